// Passes through the model: a placed step is built and submitted; one that is back is sampled, committed and published.
#pragma once
#include <span>
#include <string_view>

#include "engine/loop/batch_builder.hpp"
#include "engine/loop/commit.hpp"
#include "engine/loop/in_flight.hpp"
#include "engine/loop/phase_timer.hpp"
#include "engine/placement/preemption.hpp"

namespace patchbay::kv {
class KvCache;
}

namespace patchbay::engine {

class DraftVerification;
class SamplerPort;
struct StepContext;
class StepSummary;

class Passes {
  public:
    struct Parts {
        Clock& clock;
        StepContext& context;
        kv::KvCache& kv;
        BatchBuilder& batches;
        execution::Executor& executor;
        InFlightSteps& in_flight;
        SamplerPort& sampler;
        DraftVerification& verification;
        Preemption& preemption;
        Commit& commit;
        StepSummary& summary;
    };
    explicit Passes(const Parts& parts) : p_(parts), timer_(parts.clock, parts.context) {}

    size_t in_flight() const { return p_.in_flight.count(); } // steps that were submitted and are not back
    bool sampled() const { return p_.batches.rows().count() > 0; } // the latest one that was built had rows to sample
    bool oldest_is_poisoned() const { return p_.in_flight.any() && p_.in_flight.oldest().is_poisoned; }
    // Whether the host samples, so that the next token is known only when its logits are back.
    bool host_samples() const;
    // Why the oldest step must be back before the next one is planned, by what its sequences are. Empty: it need not.
    std::string_view history_reason() const { return p_.in_flight.history_reason(); }

    struct Way {
        bool overlaps = false;              // the host goes on while it is computed
        bool is_redone_if_it_fails = false; // by the predecessor of what failed
    };
    Result<> submit(std::span<Placed>, const Way&);
    // Waits for the oldest step: its tokens are appended and handed out. A poisoned one is computed anew.
    Result<> collect();
    uint64_t collected() const { return collected_; } // steps that came back so far, the poisoned ones not
    void cancel() { p_.executor.cancel(); } // all of them: the engine cannot go on
    void give_up(); // all of them: their sequences are computed anew

  private:
    void compute_anew(InFlightStep&);

    const Parts p_;
    const PhaseTimer timer_;
    StepSamples samples_;
    uint64_t collected_ = 0, latest_collect_ns_ = 0;
};

}  // namespace patchbay::engine
