#include "execution/local_executor.hpp"

#include <utility>

#include "execution/pass_stats.hpp"
#include "execution/sync_reasons.hpp"

namespace patchbay::execution {

namespace {

Result<StepOutput> compute_now(runner::ModelRunner& runner, const runner::Batch& batch,
                               const runner::SampleCall* call) {
    StepOutput out;
    out.is_sampled = call != nullptr;
    if (call) {
        PB_TRY(out.sampled, runner.passes().forward(batch, *call));
    } else {
        PB_TRY(out.logits, runner.passes().forward(batch));
    }
    out.hidden = runner.passes().hidden_states();
    return out;
}

}  // namespace

Result<StepOutput> LocalDraftPasses::compute(const runner::Batch& batch, const runner::SampleCall* call) {
    return compute_now(runner_, batch, call);
}

std::string_view LocalExecutor::sync_reason() const {
    if (!runner_->passes().can_submit()) return sync_reason::kDevice;
    return ranks_ ? sync_reason::kRanks : "";
}

Result<StepOutput> LocalExecutor::compute(const StepInput& in) {
    if (!in.sampler) return compute_now(*runner_, in.batch, nullptr);
    const runner::SampleCall call{*in.sampler, in.samples};
    return compute_now(*runner_, in.batch, &call);
}

Result<> LocalExecutor::submit(const StepInput& in) {
    const Result<> begun = begin(in);
    if (!begun) cancel();
    return begun;
}

Result<> LocalExecutor::begin(const StepInput& in) {
    if (computed_ || (!in.overlaps && runner_->passes().any_in_flight()))
        return fail(StatusCode::kInternal, "a step was submitted before the one that it may not overlap was back");
    runner_->passes().pass_host_time();
    if (!in.overlaps) {
        PB_TRY(computed_, compute(in));
        return {};
    }
    if (!in.sampler) return runner_->passes().submit(in.batch, nullptr);
    const runner::SampleCall call{*in.sampler, in.samples};
    return runner_->passes().submit(in.batch, &call);
}

Result<StepOutput> LocalExecutor::wait(std::span<const RowPath>) {
    if (computed_) return *std::exchange(computed_, std::nullopt);
    const auto sampled = runner_->passes().wait();
    if (!sampled) {
        cancel();
        return sampled.failure();
    }
    StepOutput out;
    out.sampled = *sampled;
    out.is_sampled = true;
    return out;
}

void LocalExecutor::cancel() {
    computed_.reset();
    runner_->passes().abandon();
}

Result<runner::SampledRows> LocalExecutor::sample(std::span<const float> logits, const runner::SampleCall& call) {
    return runner_->passes().sample(logits, call);
}

PassStats LocalExecutor::stats() const {
    const runner::PassReport& latest = runner_->passes().latest();
    const runner::GraphCache& graphs = runner_->passes().graphs().cache();
    return {latest.times, latest.graph, graphs.count(), graphs.bytes(), 0, 0};
}

// ---- ranks ----

Result<> RankedExecutor::submit(const StepInput& in) {
    using IfItFails = parallel::Hub::IfItFails;
    const auto then = in.is_redone_if_it_fails ? IfItFails::kIsRedone : IfItFails::kEnds;
    const auto sent = group_.broadcast(in.rows, in.copies, then, clock_);
    if (!sent) {
        cancel();
        return group_.cause(sent.failure());
    }
    Result<> done = LocalExecutor::submit(in);
    if (done && in.is_redone_if_it_fails) done = group_.wait_for_step();
    if (done) return done;
    cancel();
    return in.is_redone_if_it_fails ? give_up(done.failure()) : group_.cause(done.failure());
}

Result<> RankedExecutor::give_up(Failure fault) {
    const auto done = group_.reconnect(fault, [this] { return runner().reconnect(); });
    return done ? fault : group_.cause(done.failure());
}

PassStats RankedExecutor::stats() const {
    PassStats out = LocalExecutor::stats();
    out.broadcast_bytes = group_.latest().bytes;
    out.broadcast_ns = group_.latest().ns;
    return out;
}

}  // namespace patchbay::execution
