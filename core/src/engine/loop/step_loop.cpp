#include "engine/loop/step_loop.hpp"

#include <algorithm>
#include <utility>

#include "base/plugin_call.hpp"
#include "engine/loop/page_copies.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/loop/step_observer.hpp"
#include "engine/loop/step_summary.hpp"
#include "engine/placement/placed.hpp"
#include "engine/placement/placement.hpp"
#include "engine/scheduling/admission.hpp"
#include "engine/speculation/proposals.hpp"
#include "engine/swap/swaps.hpp"
#include "execution/sync_reasons.hpp"

namespace patchbay::engine {

namespace reason = execution::sync_reason;

StepLoop::StepLoop(const Parts& parts, std::string_view sync_reason)
    : p_(parts), timer_(parts.clock, parts.context), progress_(parts.clock, parts.sequences, parts.scheduler),
      recovery_(parts.branches, parts.passes, parts.lifecycle, parts.swaps), sync_reason_(sync_reason) {}

Result<StepReport> StepLoop::step() {
    const uint64_t collected = p_.passes.collected();
    begin();
    Result<> done = advance();
    const bool idle = p_.placement.placed().empty() && p_.passes.collected() == collected && has_requests();
    if (done) done = progress_.check(idle);
    p_.lifecycle.end_step();
    if (done) done = end();
    if (!done) recovery_.end_all(done.failure());
    p_.context.latest = std::exchange(p_.context.report, {}); // what ends or fails before the next step is that one's
    if (!done) return done.failure();
    return p_.context.latest;
}

// Aborts and swaps asked for since the last step; an idle engine waits for the next arrival, which is no work.
void StepLoop::begin() {
    StepContext& context = p_.context;
    CallReport& calls = context.report.calls;
    calls.kv_update_ns = calls.kv_choose_ns = 0; // no time of this step, nor of what enters a slot now
    recovery_.begin_step();
    context.report.step = current_call().step = ++context.step;
    p_.lifecycle.begin_step();
    if (p_.passes.in_flight() == 0) progress_.wait_if_idle();
    p_.swaps.at_boundary(p_.passes.in_flight() > 0);
    context.report.start_ns = context.now_ns = p_.clock.now_ns();
    p_.kv.residencies().set_time(context.report.start_ns);
}

std::string_view StepLoop::sync_reason() const {
    if (!sync_reason_.empty()) return sync_reason_;
    if (p_.swaps.step_may_be_redone()) return reason::kProbation; // by the predecessor of one that fails
    if (p_.swaps.waits_for_steps()) return reason::kSwap;
    if (p_.beams.any_running()) return reason::kBeamSearch; // what goes on, with whose KV, is known when all are back
    return p_.passes.host_samples() ? reason::kHostSampler : "";
}

Result<> StepLoop::advance() {
    Passes& passes = p_.passes;
    if (passes.oldest_is_poisoned()) PB_CHECK(passes.collect());
    std::string_view waited = sync_reason();
    size_t depth = waited.empty() ? 1 : 0; // steps that may be in flight after this one
    if (waited.empty()) waited = passes.history_reason();
    while (!waited.empty() && passes.in_flight() > 0) PB_CHECK(passes.collect());

    PB_CHECK(timer_.run(Phase::kAdmit, [&] { p_.admission.admit(); }));
    if (depth > 0 && p_.pooling.any()) { // what the steps before handed out may have brought the first one
        while (passes.in_flight() > 0) PB_CHECK(passes.collect());
        waited = reason::kPooling;
        depth = 0;
    }
    PB_CHECK(timer_.run(Phase::kPlan, [&] { return p_.scheduler.plan(); }));
    if (passes.in_flight() > 0 && !p_.scheduler.latest().preemptions.empty()) { // what is taken away must be back first
        PB_CHECK(passes.collect());
        PB_CHECK(timer_.run(Phase::kPlan, [&] { return p_.scheduler.plan(); }));
        waited = reason::kPreemption;
    }
    for (StepObserver* o : observers_) o->on_planned(p_.scheduler.latest());
    PB_CHECK(timer_.run(Phase::kApply, [&] {
        p_.placement.apply(p_.scheduler.latest());
        p_.branches.fork(p_.placement.placed());
    }));
    std::vector<Placed>& placed = p_.placement.placed();
    for (StepObserver* o : observers_) o->on_placed(placed);
    p_.context.report.sync_reason = waited;
    if (!placed.empty()) PB_CHECK(recovery_.or_recovered(passes.submit(placed, {depth > 0, p_.swaps.can_recover()})));
    while (passes.in_flight() > (placed.empty() ? 0 : depth)) PB_CHECK(recovery_.or_recovered(passes.collect()));
    if (placed.empty() || passes.in_flight() > 0 || !p_.proposals.any()) return {};
    return timer_.run(Phase::kCommit, [&] { p_.proposals.propose(); });
}

Result<> StepLoop::end() {
    const bool planned = !p_.placement.placed().empty() && !recovery_.recovered(); // what failed in it has not passed
    p_.swaps.end_step({planned, planned && p_.passes.sampled()});
    if (!has_requests()) PB_CHECK(p_.copies.flush());
    p_.summary.note_state();
    p_.proposals.observe(p_.context.report);
    for (StepObserver* o : observers_) o->on_end(p_.context.report);
    return {};
}

}  // namespace patchbay::engine
