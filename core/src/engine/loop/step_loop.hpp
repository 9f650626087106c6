// The engine's one loop: a step is planned, placed, built and submitted; one that is back is sampled, committed and
// published. With a step in flight the next one is planned and submitted before it is back.
#pragma once
#include "engine/loop/passes.hpp"
#include "engine/loop/progress.hpp"
#include "engine/loop/step_observer.hpp"
#include "engine/loop/step_recovery.hpp"
#include "engine/swap/swaps.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

class Admission;
class PageCopies;
class Placement;
class Proposals;
struct StepContext;
class StepSummary;

class StepLoop {
  public:
    struct Parts {
        Clock& clock;
        StepContext& context;
        const Sequences& sequences;
        kv::KvCache& kv;
        Admission& admission;
        SchedulerPort& scheduler;
        Placement& placement;
        Branches& branches;
        Passes& passes;
        PageCopies& copies;
        Proposals& proposals;
        const BeamSearches& beams;
        const Pooling& pooling;
        Lifecycle& lifecycle;
        Swaps& swaps;
        StepSummary& summary;
    };
    // sync_reason: why each step must be back before the next one is planned, whatever the step; empty: it need not.
    StepLoop(const Parts&, std::string_view sync_reason);

    StepObservers& observers() { return observers_; }
    // Runs one step, or waits on the clock for the next arrival if nothing can run. Fails only if the engine cannot go
    // on: then all requests have ended.
    Result<StepReport> step();
    // Requests, a step in flight, or a swap that is on its way into its slot.
    bool has_unfinished() const { return has_requests() || p_.swaps.needs_boundary(); }
    std::string_view sync_reason() const; // of the next step, whatever it has: likewise

  private:
    bool has_requests() const { return !p_.sequences.empty() || p_.passes.in_flight() > 0; }
    void begin();
    Result<> advance();
    Result<> end();

    const Parts p_;
    const PhaseTimer timer_;
    Progress progress_;
    StepRecovery recovery_;
    const std::string_view sync_reason_;
    StepObservers observers_;
};

}  // namespace patchbay::engine
