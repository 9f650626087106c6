// What stands around a step from its plan to its tokens, and a slot of what computes in which nothing computes.
#pragma once
#include <string>
#include <utility>

#include "engine/loop/passes.hpp"
#include "engine/loop/step_summary.hpp"
#include "engine/placement/placement.hpp"
#include "engine/sampling/sampler_port.hpp"
#include "engine/sampling/structured_output.hpp"
#include "engine/scheduling/scheduler_view.hpp"
#include "engine/speculation/draft_verification.hpp"
#include "engine/swap/swap_port.hpp"
#include "unit/engine_parts/commit_neighbours.hpp"

namespace patchbay::engine::testing {

// One that plans all that is left of those who run and of those who wait.
void plan_all(const pb_scheduler_in&, pb_scheduler_out&);

struct StepNeighbours : EndingNeighbours {
    explicit StepNeighbours(World = {});
    ~StepNeighbours();

    PressureMonitor pressure;
    SchedulerView view{settings, sequences, kv, hints, beams.room(), pressure};
    SamplerPort sampler{kVocab, clock, context, journal};
    FakeSampler& sampler_policy = install<FakeSampler>(sampler.slot(), kFakeSampler);
    config::SpeculationSettings speculation;
    DraftVerification verification{speculation, kVocab, drafts};
    Preemption preemption{{settings, sequences, kv, admission, hints, beams, draft_kv, executor, context}};
    Placement placement{{settings, sequences, kv, admission, scheduler, hints, siblings, beams, preemption, pressure,
                         prompt_logprobs, draft_kv, context}};
    BatchBuilder batches{{form, kv, rows, constraints, prompt_logprobs, pooling, branches, draft_kv, kVocab, context}};
    Commit commit{{sequences, lifecycle, outputs, constraints, prompt_logprobs, pooling, siblings, beams, branches,
                   drafting, in_flight, sampler, aborts, kVocab, true, context}};
    StructuredOutput structured_output{nullptr, eos, kVocab, clock, context};
    StepSummary summary{{sequences, kv, pressure, preemption, executor, structured_output, clock, context}};
    Passes passes{{clock, context, kv, batches, executor, in_flight, sampler, verification, preemption, commit,
                   summary}};
};

inline host::Identity named(const char* kind, const char* name) {
    return {.kind = kind, .name = name, .version = "1.0.0", .sha256 = {}, .build = {}, .path = {}};
}

// A slot that a test says all of: what is in it is called for nothing.
class FakeSwapPort final : public SwapPort {
  public:
    FakeSwapPort(const Clock&, StepContext&, SwapJournal&, const char* kind = "attention");
    ~FakeSwapPort() override;
    bool in_pass = true, redoes = true;
    int entered = 0, rolled_back = 0, committed = 0;
    std::string fault; // serves() fails with it, as unsupported
    std::function<void()> entering;

    std::shared_ptr<host::Swap> post();

    host::Slot& slot() override { return slot_; }
    void enter() override {
        entered += 1;
        if (entering) entering();
    }
    Result<> serves() override { return fault.empty() ? Result<>() : fail(StatusCode::kUnsupported, fault); }
    bool roll_back(const std::string& phase, const Failure& why) override;
    bool redoes_steps() const override { return redoes; }
    bool computes() const override { return in_pass; }
    void commit() override { committed += 1; }
    StepCall call_of(const StepUse& use) override { return {"call", use.planned, 0}; }

  private:
    StepContext& context_;
    SwapJournal& journal_;
    const char* const kind_;
    host::Slot slot_;
};

}  // namespace patchbay::engine::testing
