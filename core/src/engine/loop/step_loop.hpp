// The engine's one loop: a step is planned, placed, built and submitted; one that is back is sampled, committed and
// published. With a step in flight the next one is planned and submitted before it is back.
#pragma once
#include <vector>

#include "engine/loop/commit.hpp"
#include "engine/loop/step_observer.hpp"
#include "engine/loop/step_summary.hpp"
#include "engine/loop/swaps.hpp"
#include "engine/placement/placement.hpp"
#include "engine/speculation/proposals.hpp"

namespace patchbay::engine {

class StepLoop {
  public:
    struct Parts {
        Clock& clock;
        const config::EngineSettings& settings;
        StepContext& context;
        Sequences& sequences;
        kv::KvCache& kv;
        Admission& admission;
        SchedulerPort& scheduler;
        Placement& placement;
        PressureMonitor& pressure;
        Preemption& preemption;
        Branches& branches;
        BatchBuilder& batches;
        PageCopies& copies;
        execution::Executor& executor;
        InFlightSteps& in_flight;
        SamplerPort& sampler;
        DraftVerification& verification;
        Commit& commit;
        Proposals& proposals;
        const BeamSearches& beams;
        Lifecycle& lifecycle;
        Aborts& aborts;
        Swaps& swaps;
        StepSummary& summary;
    };
    // sync_reason: why each step must be back before the next one is planned, whatever the step; empty: it need not.
    StepLoop(const Parts&, std::string_view sync_reason);

    void add(StepObserver& observer) { observers_.push_back(&observer); }
    // Runs one step, or waits on the clock for the next arrival if nothing can run. Fails only if the engine cannot go
    // on: then all requests have ended.
    Result<StepReport> step();
    bool has_unfinished() const { return !p_.sequences.empty() || p_.in_flight.any(); }
    std::string_view sync_reason() const; // of the next step, whatever it has: likewise

  private:
    void begin();
    Result<> advance();
    Result<> submit(std::vector<Placed>&, bool overlaps);
    Result<> collect();
    void compute_anew(InFlightStep&);
    Result<> check_progress();
    Result<> end();
    template <class F>
    Result<> phase(Phase, F&&); // adds up its time, with what little came before it

    const Parts p_;
    const std::string_view sync_reason_;
    std::vector<StepObserver*> observers_;
    StepSamples samples_;
    uint64_t evictions_before_ = 0; // the step
    uint64_t latest_collect_ns_ = 0;
    bool has_collected_ = false;    // in the step
    uint32_t idle_steps_ = 0;       // in a row
};

}  // namespace patchbay::engine
