// Whether an engine's books agree with one another. Nothing here is part of serving.
#include <algorithm>
#include <unordered_set>

#include "engine/state.hpp"

namespace patchbay::engine {

Result<> Engine::audit() const {
    const State& s = *state_;
    const auto name = [](RequestId id) { return "sequence " + std::to_string(id); };
    std::unordered_set<RequestId> waiting, running;
    for (const pb_sequence& r : s.waiting.records())
        if (!waiting.insert(r.id).second) return fail(name(r.id) + " waits twice");
    for (const Sequence* r : s.running)
        if (!running.insert(r->id).second) return fail(name(r->id) + " runs twice");
    if (running.size() > s.settings.max_num_seqs)
        return fail(std::to_string(running.size()) + " sequences run, more than max_num_seqs of " +
                    std::to_string(s.settings.max_num_seqs));

    uint64_t waiting_tokens = 0;
    size_t found = 0, slots = 0;
    std::vector<const kv::BlockTable*> tables;
    for (const auto& [id, owned] : s.sequences) {
        const Sequence& q = *owned;
        tables.push_back(&q.table);
        if (q.id != id || q.delta.finish != FinishReason::kNone)
            return fail(name(id) + " has ended and is still there");
        if (waiting.contains(id) != (q.place == Place::kWaiting) ||
            running.contains(id) != (q.place == Place::kRunning) ||
            s.pending.contains({q.request.arrival_ns, id}) != (q.place == Place::kPending))
            return fail(name(id) + " is in another queue than it says");
        found += q.place != Place::kHeld;
        if (q.place == Place::kHeld && q.beams) { // until the first beam is admitted
            if (q.beams->slots[0]->place == Place::kHeld) return fail(name(id) + " is held by no beam");
        } else if (q.place == Place::kHeld) {
            const auto at = s.siblings.find(q.group);
            if (at == s.siblings.end() || std::ranges::none_of(at->second, &Sequence::holds_siblings))
                return fail(name(id) + " is held by nobody");
        }
        if (q.place == Place::kWaiting) waiting_tokens += q.confirmed();
        else if (!q.swapped.empty()) return fail(name(id) + " does not wait and has KV in host memory");
        slots += q.swapped.slots.held;
        if (q.place != Place::kRunning && (q.table.held > 0 || q.computed > 0 || q.in_flight > 0))
            return fail(name(id) + " does not run and holds " + std::to_string(q.table.held) + " pages for " +
                        std::to_string(q.computed) + " tokens");
        if (q.computed + q.in_flight > q.tokens.size() + q.coming ||
            (!s.kv->windows().empty() && q.computed + q.in_flight > s.kv->capacity(q.table)))
            return fail(name(id) + " has " + std::to_string(q.computed) + " tokens computed and " +
                        std::to_string(q.in_flight) + " in flight, of " + std::to_string(q.tokens.size()) +
                        ", with room for " + std::to_string(s.kv->capacity(q.table)));
        if (q.tokens.size() < q.prompt_count || q.outputs() > q.request.sampling.max_tokens)
            return fail(name(id) + " has lost or gained tokens");
    }
    if (found != waiting.size() + running.size() + s.pending.size())
        return fail("a queue names a sequence that is not there");
    if (slots != s.kv->swap_space().used())
        return fail(std::to_string(slots) + " pages lie in host memory, and " +
                    std::to_string(s.kv->swap_space().used()) + " slots are taken");
    if (waiting_tokens != s.waiting_tokens)
        return fail(std::to_string(waiting_tokens) + " tokens wait, and " + std::to_string(s.waiting_tokens) +
                    " are counted");
    for (const Flight* flight : {&s.flying, &s.launched}) {
        for (const kv::BlockTable& held : flight->held) tables.push_back(&held);
        for (const Scheduled& item : flight->items)
            if (!running.contains(item.sequence->id)) return fail("a step in flight has a sequence that does not run");
    }
    for (const auto& left : s.behind) tables.push_back(&left->table);
    return s.kv->audit(tables);
}

}  // namespace patchbay::engine
