// The ports of scheduler, sampler, proposer and kv_policy for their swaps.
#pragma once
#include "engine/placement/kv_policy_port.hpp"
#include "engine/sampling/sampler_port.hpp"
#include "engine/scheduling/scheduler_port.hpp"
#include "engine/speculation/proposals.hpp"
#include "engine/swap/swap_port.hpp"

namespace patchbay::engine {

class PromptLogprobs;

class SchedulerSwaps final : public SwapPort {
  public:
    SchedulerSwaps(SchedulerPort& port, StepContext& context) : port_(port), context_(context) {}
    host::Slot& slot() override { return port_.slot(); }
    void enter() override { port_.resync(port_.slot().current()); }
    bool roll_back(const std::string& phase, const Failure& why) override {
        return port_.roll_back(phase, why);
    }
    StepCall call_of(const StepUse& use) override { return {"plan", use.planned, context_.report.calls.plan_ns}; }

  private:
    SchedulerPort& port_;
    StepContext& context_;
};

class SamplerSwaps final : public SwapPort {
  public:
    struct Parts {
        const Sequences& sequences;
        const PromptLogprobs& prompt_logprobs;
        const execution::Executor& executor;
        const config::SpeculationSettings& speculation;
        StepContext& context;
    };
    SamplerSwaps(SamplerPort& port, const Parts& parts) : port_(port), p_(parts) {}
    host::Slot& slot() override { return port_.slot(); }
    Result<> takes_swaps() const override;
    Result<> fits(host::Component&) const override;
    void enter() override {}
    Result<> serves() override; // every request that is there
    bool roll_back(const std::string& phase, const Failure& why) override {
        return port_.roll_back(phase, why);
    }
    StepCall call_of(const StepUse& use) override { return {"sample", use.sampled, p_.context.report.calls.sample_ns}; }

  private:
    SamplerPort& port_;
    const Parts p_;
};

class ProposerSwaps final : public SwapPort {
  public:
    ProposerSwaps(Proposals& proposals, StepContext& context) : proposals_(proposals), context_(context) {}
    host::Slot& slot() override { return proposals_.slot(); }
    Result<> takes_swaps() const override;
    Result<std::unique_ptr<host::Component>> construct(std::shared_ptr<host::Library>, const pb_component&,
                                                       const host::Settings&, const host::Services&) override;
    void enter() override { proposals_.forget_acceptance(); }
    bool roll_back(const std::string& phase, const Failure& why) override {
        return proposals_.roll_back(phase, why);
    }
    bool redoes_steps() const override { return false; } // the next step goes on without drafts
    StepCall call_of(const StepUse&) override {
        return {"propose", proposals_.asked(), context_.report.calls.propose_ns};
    }

  private:
    Proposals& proposals_;
    StepContext& context_;
};

class KvPolicySwaps final : public SwapPort {
  public:
    KvPolicySwaps(KvPolicyPort& port, const Sequences& sequences, StepContext& context)
        : port_(port), sequences_(sequences), context_(context) {}
    host::Slot& slot() override { return port_.slot(); }
    Result<> takes_swaps() const override;
    Result<bool> warm_up(const host::Component&) override;
    void enter() override { adopted_ = port_.adopt(); }
    Result<> serves() override { return adopted_; }
    const char* serves_phase() const override { return "adopt"; }
    bool roll_back(const std::string& phase, const Failure& why) override {
        return port_.roll_back(phase, why);
    }
    bool redoes_steps() const override { return false; } // the page unused the longest is evicted instead
    StepCall call_of(const StepUse&) override;

  private:
    KvPolicyPort& port_;
    const Sequences& sequences_;
    StepContext& context_;
    Result<> adopted_;
};

}  // namespace patchbay::engine
