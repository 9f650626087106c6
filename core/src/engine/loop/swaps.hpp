// Swaps of scheduler and sampler, as the loop sees them: at the boundary before a step, and during probation. What a
// slot itself does is in host/slot.hpp.
#pragma once
#include "config/engine_config.hpp"
#include "engine/sampling/prompt_logprobs.hpp"
#include "engine/sampling/sampler_port.hpp"
#include "engine/scheduling/scheduler_port.hpp"

namespace patchbay::engine {

class Swaps {
  public:
    struct Parts {
        const config::SwapSettings& settings;
        const Sequences& sequences;
        SchedulerPort& scheduler;
        SamplerPort& sampler;
        const PromptLogprobs& prompt_logprobs;
        SwapJournal& journal;
        StepContext& context;
    };
    explicit Swaps(const Parts& parts) : p_(parts) {}

    void at_boundary(); // the next in line
    bool on_probation() const { return p_.scheduler.slot().previous() || p_.sampler.slot().previous(); }
    void end_step(bool planned, bool sampled); // of probation: which of them was called

  private:
    void refuse_sampler_that_cannot_serve();
    template <class Port>
    void exchange(Port&);
    template <class Port>
    void end_step(Port&, bool called, uint64_t call_ns, const char* call);

    const Parts p_;
};

}  // namespace patchbay::engine
