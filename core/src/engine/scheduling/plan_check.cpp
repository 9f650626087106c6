#include "engine/scheduling/plan_check.hpp"

#include <algorithm>
#include <string>

#include "config/engine_config.hpp"
#include "engine/request/sequence.hpp"
#include "engine/request/sequences.hpp"
#include "engine/scheduling/step_plan.hpp"

namespace patchbay::engine {

Result<> PlanCheck::read(std::span<const pb_plan_item> items, std::span<const pb_preempt_item> preemptions,
                         StepPlan& plan) {
    named_.clear();
    plan.items.clear();
    plan.preemptions.clear();
    PB_CHECK(read_preemptions(preemptions, plan));
    return read_items(items, plan);
}

// Of those that were shown; plans mostly name them in the order in which they run, from `hint` on.
Sequence* PlanCheck::find_shown(RequestId id, size_t& hint) const {
    const auto running = sequences_.running();
    if (hint < running.size() && running[hint]->id == id) return running[hint++];
    Sequence* const s = sequences_.find(id);
    const bool shown = s && (s->place == Place::kWaiting || s->place == Place::kRunning);
    return shown ? s : nullptr;
}

Result<> PlanCheck::read_preemptions(std::span<const pb_preempt_item> preemptions, StepPlan& plan) {
    size_t hint = 0;
    for (const pb_preempt_item& item : preemptions) {
        Sequence* s = find_shown(item.id, hint);
        if (!s || s->place != Place::kRunning)
            return fail("preempts " + std::to_string(item.id) + ", which is not running");
        named_.push_back(item.id);
        plan.preemptions.push_back({s, item.id, static_cast<pb_preemption>(item.how)});
    }
    return {};
}

Result<> PlanCheck::read_items(std::span<const pb_plan_item> items, StepPlan& plan) {
    uint64_t tokens = 0, stay = sequences_.running().size() - plan.preemptions.size();
    size_t hint = 0;
    for (const pb_plan_item& item : items) {
        Sequence* s = find_shown(item.id, hint);
        if (!s) return fail("plans " + std::to_string(item.id) + ", which it was not shown");
        named_.push_back(item.id);
        if (item.tokens == 0) return fail("plans no tokens for " + std::to_string(item.id));
        tokens += item.tokens;
        stay += s->place == Place::kWaiting;
        plan.items.push_back({s, item.tokens});
    }
    std::ranges::sort(named_);
    if (const auto twice = std::ranges::adjacent_find(named_); twice != named_.end())
        return fail("names " + std::to_string(*twice) + " twice");
    if (tokens > settings_.max_num_batched_tokens)
        return fail("plans " + std::to_string(tokens) + " tokens, more than max_num_batched_tokens of " +
                    std::to_string(settings_.max_num_batched_tokens));
    if (stay > settings_.max_num_seqs)
        return fail("has " + std::to_string(stay) + " sequences running, more than max_num_seqs of " +
                    std::to_string(settings_.max_num_seqs));
    return {};
}

}  // namespace patchbay::engine
