// The model of what computes, with its weights, exchanged for another one whose layers keep the same KV.
#pragma once
#include <memory>

#include "execution/model_choice.hpp"
#include "runner/model_runner.hpp"

namespace patchbay::execution {

class ModelExchange {
  public:
    virtual ~ModelExchange() = default;
    virtual std::unique_ptr<host::Component> give() = 0; // the one it was made with, which must outlive its last step
    // Loads weights beside those in use. [any thread, beside steps] `run`: for what the device does, between steps.
    virtual Result<std::unique_ptr<runner::LoadedWeights>> load(const host::Component&, const ModelChoice&,
                                                                const runner::BetweenSteps& run) = 0;
    // Between steps, of which none is in flight. `weights` are then those that were in use.
    virtual void use(const host::Component&, runner::LoadedWeights& weights) = 0;
    virtual void release(runner::LoadedWeights&) = 0;
};

}  // namespace patchbay::execution
