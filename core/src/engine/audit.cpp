// Whether an engine's books agree with one another. Nothing here is part of serving.
#include <algorithm>
#include <unordered_set>

#include "base/refusals.hpp"
#include "engine/impl.hpp"
#include "engine/loop/in_flight.hpp"
#include "engine/request/request.hpp"
#include "engine/request/sequence.hpp"

namespace patchbay::engine {

Result<> Engine::audit() const {
    const Pipeline& p = *impl_->pipeline;
    const Sequences& all = p.sequences.all;
    const kv::TableShape& shape = p.cache.kv->shape();
    const auto name = [](RequestId id) { return "sequence " + std::to_string(id); };
    std::unordered_set<RequestId> waiting, running;
    for (const pb_sequence& r : all.waiting().records())
        if (!waiting.insert(r.id).second) return broken(name(r.id) + " waits twice");
    for (const Sequence* r : all.running())
        if (!running.insert(r->id).second) return broken(name(r->id) + " runs twice");
    if (running.size() > p.common.settings.max_num_seqs)
        return broken(std::to_string(running.size()) + " sequences run, more than max_num_seqs of " +
                      std::to_string(p.common.settings.max_num_seqs));

    uint64_t waiting_tokens = 0;
    size_t found = 0, slots = 0;
    std::vector<const kv::BlockTable*> tables;
    for (const auto& [id, owned] : all.all()) {
        const Sequence& q = *owned;
        tables.push_back(&q.kv.table);
        if (q.id != id || q.ended)
            return broken(name(id) + " has ended and is still there");
        if (waiting.contains(id) != (q.place == Place::kWaiting) ||
            running.contains(id) != (q.place == Place::kRunning) ||
            all.pending().contains({q.request->arrival_ns, id}) != (q.place == Place::kPending))
            return broken(name(id) + " is in another queue than it says");
        found += q.place != Place::kHeld;
        const auto siblings = p.sequences.siblings.of(q.group);
        if (q.place == Place::kHeld && q.is_beam()) { // until the first beam is admitted
            if (siblings.empty() || siblings[0]->place == Place::kHeld) return broken(name(id) + " is held by no beam");
        } else if (q.place == Place::kHeld) {
            const auto holds = [&](const Sequence* other) { return p.sequences.siblings.holds(*other); };
            if (std::ranges::none_of(siblings, holds))
                return broken(name(id) + " is held by no sibling");
        }
        if (q.place == Place::kWaiting) waiting_tokens += q.confirmed();
        else if (!q.kv.swapped.empty()) return broken(name(id) + " does not wait and has KV in host memory");
        slots += q.kv.swapped.slots.held;
        if (q.place != Place::kRunning && (q.kv.table.held > 0 || q.computed > 0 || q.in_flight.tokens > 0))
            return broken(name(id) + " does not run and holds " + std::to_string(q.kv.table.held) + " pages for " +
                          std::to_string(q.computed) + " tokens");
        if (q.computed + q.in_flight.tokens > q.tokens.size() + q.in_flight.placeholders ||
            (!shape.windows().empty() && q.computed + q.in_flight.tokens > shape.capacity(q.kv.table)))
            return broken(name(id) + " has " + std::to_string(q.computed) + " tokens computed and " +
                          std::to_string(q.in_flight.tokens) + " in flight, of " + std::to_string(q.tokens.size()) +
                          ", with room for " + std::to_string(shape.capacity(q.kv.table)));
        if (q.tokens.size() < q.prompt_count || q.outputs() > q.request->sampling.max_tokens)
            return broken(name(id) + " has lost or gained tokens");
    }
    if (found != waiting.size() + running.size() + all.pending().size())
        return broken("a queue names a sequence that is not there");
    if (slots != p.cache.kv->swap().space().used())
        return broken(std::to_string(slots) + " pages lie in host memory, and " +
                      std::to_string(p.cache.kv->swap().space().used()) + " slots are taken");
    if (waiting_tokens != all.waiting_tokens())
        return broken(std::to_string(waiting_tokens) + " tokens wait, and " + std::to_string(all.waiting_tokens()) +
                      " are counted");
    for (const InFlightStep& step : p.output.in_flight.all()) {
        for (const kv::BlockTable& held : step.held) tables.push_back(&held);
        for (const Placed& item : step.items)
            if (!running.contains(item.sequence->id))
                return broken("a step in flight has a sequence that does not run");
    }
    for (const auto& left : p.proposals.lingering().all()) tables.push_back(&left->kv.table);
    return p.cache.kv->audit(tables);
}

}  // namespace patchbay::engine
