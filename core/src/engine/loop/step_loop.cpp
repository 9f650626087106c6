#include "engine/loop/step_loop.hpp"

#include <algorithm>
#include <utility>

#include "base/plugin_call.hpp"

namespace patchbay::engine {

StepLoop::StepLoop(const Parts& parts, std::string_view sync_reason) : p_(parts), sync_reason_(sync_reason) {}

Result<StepReport> StepLoop::step() {
    begin();
    Result<> done = advance();
    p_.lifecycle.end_step();
    if (done) done = check_progress();
    for (const RequestId id : p_.admission.take_refused())
        p_.lifecycle.end(id, {FinishReason::kError, p_.admission.full_queue()});
    for (const RequestId id : p_.aborts.take()) p_.lifecycle.abort(id);
    if (done) done = end();
    if (done) return p_.context.report;
    p_.branches.drop();
    p_.executor.cancel();
    p_.lifecycle.fail_all(done.error());
    p_.in_flight.clear();
    return done.failure();
}

// Aborts and swaps asked for since the last step; an idle engine waits for the next arrival, which is no work.
void StepLoop::begin() {
    StepContext& context = p_.context;
    context.report = {};
    context.report.step = current_call().step = ++context.step;
    p_.lifecycle.begin_step();
    evictions_before_ = p_.kv.pool().evictions();
    has_collected_ = false;
    const auto& pending = p_.sequences.pending();
    const bool idle = p_.sequences.waiting().empty() && p_.sequences.running().empty() && !p_.in_flight.any();
    if (idle && !pending.empty()) p_.clock.wait_until_ns(pending.begin()->first);
    p_.swaps.at_boundary();
    context.report.start_ns = context.now_ns = p_.clock.now_ns();
    p_.kv.set_time(context.report.start_ns);
}

std::string_view StepLoop::sync_reason() const {
    if (!sync_reason_.empty()) return sync_reason_;
    if (p_.swaps.on_probation()) return "probation"; // one that fails leaves its step to its predecessor
    if (p_.beams.any_running()) return "beam_search"; // what goes on, and with whose KV, is known when all are back
    const bool host_samples = p_.executor.tokens() == execution::TokenSource::kModel && !p_.sampler.is_on_device();
    return host_samples ? "host_sampler" : ""; // the next token is known when its logits are back
}

Result<> StepLoop::advance() {
    if (p_.in_flight.any() && p_.in_flight.oldest().is_poisoned) PB_CHECK(collect());
    std::string_view waited = sync_reason();
    const size_t depth = waited.empty() ? 1 : 0; // steps that may be in flight after this one
    if (waited.empty()) waited = p_.in_flight.history_reason();
    while (!waited.empty() && p_.in_flight.any()) PB_CHECK(collect());

    PB_CHECK(phase(Phase::kAdmit, [&] { p_.admission.admit(); }));
    PB_CHECK(phase(Phase::kPlan, [&] { return p_.scheduler.plan(); }));
    if (p_.in_flight.any() && !p_.scheduler.latest().preemptions.empty()) { // what is taken away must be back first
        PB_CHECK(collect());
        PB_CHECK(phase(Phase::kPlan, [&] { return p_.scheduler.plan(); }));
        waited = "preemption";
    }
    PB_CHECK(phase(Phase::kApply, [&] {
        p_.placement.apply(p_.scheduler.latest());
        p_.branches.fork(p_.placement.placed());
    }));
    std::vector<Placed>& placed = p_.placement.placed();
    for (StepObserver* o : observers_) o->on_placed(placed);
    p_.context.report.sync_reason = waited;
    if (!placed.empty()) PB_CHECK(submit(placed, depth > 0));
    while (p_.in_flight.count() > depth || (placed.empty() && p_.in_flight.any())) PB_CHECK(collect());
    if (placed.empty() || p_.in_flight.any() || !p_.proposals.any()) return {};
    return phase(Phase::kCommit, [&] { p_.proposals.propose(); });
}

Result<> StepLoop::submit(std::vector<Placed>& placed, bool overlaps) {
    PB_CHECK(phase(Phase::kBuild, [&] { p_.batches.build(placed); }));
    return phase(Phase::kRun, [&]() -> Result<> {
        execution::StepInput in = p_.batches.input();
        in.overlaps = overlaps;
        if (p_.sampler.samples_in_pass() && p_.batches.rows().count() > 0) in.sampler = &p_.sampler.slot().current();
        InFlightStep step{.begin_ns = p_.clock.now_ns(), .tokens = p_.batches.tokens(), .items = placed, .held = {}};
        PB_CHECK(p_.executor.submit(in));
        p_.kv.forget_copies();
        p_.summary.note_pass();
        step.host_pages = p_.context.report.pages_to_host + p_.context.report.pages_to_device;
        p_.in_flight.push(std::move(step));
        return {};
    });
}

// The oldest step in flight: its tokens are appended and handed out.
Result<> StepLoop::collect() {
    InFlightStep& step = p_.in_flight.oldest();
    if (step.is_poisoned) {
        compute_anew(step);
        return {};
    }
    has_collected_ = true;
    const std::span<Placed> items = p_.in_flight.take_back_placeholders(step);
    execution::StepOutput output;
    PB_CHECK(phase(Phase::kRun, [&]() -> Result<> {
        PB_TRY(output, p_.executor.wait(p_.batches.paths(items)));
        return {};
    }));
    const uint64_t now = p_.clock.now_ns(); // the device began with it when the one before it was done
    p_.preemption.note_step(step.tokens, step.host_pages, now - std::max(step.begin_ns, latest_collect_ns_));
    latest_collect_ns_ = now;
    p_.verification.begin(items);
    PB_CHECK(phase(Phase::kSample, [&] { return p_.sampler.sample(p_.batches.rows(), output, samples_); }));
    p_.verification.accept_by_rates(samples_);
    PB_CHECK(phase(Phase::kCommit, [&] { p_.commit.commit(items, samples_); }));
    PB_CHECK(phase(Phase::kPublish, [&] { p_.commit.publish(items); }));
    p_.in_flight.drop_oldest();
    return {};
}

// A token that is none went into it, so its fault and its results are of no use: a failing request fails alone. The
// others compute anew; what may hold half a step (KV, states, named blocks) is given up.
void StepLoop::compute_anew(InFlightStep& step) {
    p_.executor.cancel();
    for (const Placed& item : step.items) p_.preemption.compute_anew(*item.sequence);
    for (const kv::BlockTable& table : step.held) p_.kv.forget(table); // of sequences that have ended since
    p_.in_flight.drop_oldest();
}

template <class F>
Result<> StepLoop::phase(Phase phase, F&& f) {
    Result<> done;
    if constexpr (std::is_void_v<decltype(f())>) f();
    else done = f();
    const uint64_t now = p_.clock.now_ns();
    p_.context.report.phase_ns[static_cast<size_t>(phase)] += now - std::exchange(p_.context.now_ns, now);
    return done;
}

// A policy that runs nothing while there is work loses its slot to its predecessor, or ends the engine.
Result<> StepLoop::check_progress() {
    constexpr uint32_t kMaxIdleSteps = 1000;
    const bool idle = p_.placement.placed().empty() && !has_collected_ && has_unfinished();
    idle_steps_ = idle ? idle_steps_ + 1 : 0;
    const auto& pending = p_.sequences.pending();
    if (idle_steps_ >= kMaxIdleSteps && pending.empty() &&
        p_.scheduler.roll_back("plan", "ran nothing for " + std::to_string(idle_steps_) + " steps in a row"))
        idle_steps_ = 0;
    if (idle_steps_ == 0) return {};
    if (!pending.empty()) p_.clock.wait_until_ns(pending.begin()->first); // nothing to do until then
    else if (idle_steps_ >= kMaxIdleSteps)
        return fail(p_.scheduler.text() + " ran nothing for " + std::to_string(kMaxIdleSteps) +
                    " steps in a row with " + std::to_string(p_.sequences.all().size()) + " requests unfinished");
    return {};
}

Result<> StepLoop::end() {
    const bool planned = !p_.placement.placed().empty();
    if (p_.swaps.on_probation()) p_.swaps.end_step(planned, planned && p_.batches.rows().count() > 0);
    if (p_.settings.adaptive_watermark && planned) p_.pressure.step(p_.context.report.preempted_for_memory);
    if (!has_unfinished()) PB_CHECK(p_.copies.flush());
    p_.context.report.evicted_pages = static_cast<uint32_t>(p_.kv.pool().evictions() - evictions_before_);
    p_.summary.note_state();
    p_.proposals.observe(p_.context.report);
    for (StepObserver* o : observers_) o->on_end(p_.context.report);
    return {};
}

}  // namespace patchbay::engine
