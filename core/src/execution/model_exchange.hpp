// The model of what computes, with its weights, exchanged for another one whose layers keep the same KV.
#pragma once
#include <memory>
#include <string>

#include "execution/model_choice.hpp"
#include "runner/model_runner.hpp"

namespace patchbay::execution {

struct WeightFiles {
    std::string path;     // a folder or file
    std::string identity; // as weights::model_identity()
};

class ModelExchange {
  public:
    virtual ~ModelExchange() = default;
    virtual std::unique_ptr<host::Component> give() = 0; // the one it was made with, which must outlive its last step
    // That its layers keep the same KV and its vocabulary is the same; kUnsupported: that is not so. [any thread]
    virtual Result<> check(const host::Component&, const ModelChoice&) const = 0;
    // Loads weights beside those in use. [any thread, beside steps] `run`: for what the device does, between steps.
    virtual Result<std::unique_ptr<runner::LoadedWeights>> load(const host::Component&, const ModelChoice&,
                                                                const WeightFiles&,
                                                                const runner::BetweenSteps& run) = 0;
    // Between steps, of which none is in flight. `weights` are then those that were in use.
    // A failure changes nothing.
    virtual Result<> use(const host::Component&, runner::LoadedWeights& weights) = 0;
    virtual void release(runner::LoadedWeights&) = 0;
};

}  // namespace patchbay::execution
