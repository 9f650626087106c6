// The model's slot: other weights, or another implementation, for layers that keep the same KV. Weights are loaded
// beside the steps; at the exchange every sequence is computed anew from its tokens, so that each token comes from one
// model.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine/swap/candidate.hpp"
#include "engine/swap/swap_port.hpp"
#include "execution/model_choice.hpp"
#include "host/slot.hpp"
#include "runner/between_steps.hpp"
#include "runner/loaded_weights.hpp"

namespace patchbay::execution {
class Executor;
class ModelExchange;
}

namespace patchbay::engine {

struct EngineFacts;
class Recomputation;
struct StepContext;
class SwapJournal;

class ModelSwaps final : public SwapPort {
  public:
    struct Parts {
        const config::EngineConfig& config;
        EngineFacts& facts; // kept true
        execution::Executor& executor;
        Recomputation& recomputation;
        const Clock& clock;
        StepContext& context;
        SwapJournal& journal;
    };
    explicit ModelSwaps(const Parts&);
    ~ModelSwaps() override; // nothing is computed any more

    // in.choice.plugin: the folder or file of the weights. Ready to be posted, or refused. [any thread, beside steps]
    std::shared_ptr<host::Swap> prepare(const CandidateInputs& in, const runner::BetweenSteps& run);

    // Weights of candidates that are gone, and never took the slot. [between steps]
    void release_unused();

    // Whether the checkpoint keeps other KV than the model that runs, or has another vocabulary, so that only a new
    // engine can run it. False where it cannot be said, which prepare() then explains. Likewise.
    bool needs_new_engine(const CandidateInputs& in);

    host::Slot& slot() override { return slot_; }
    Result<> takes_swaps() const override;
    void enter() override;
    Result<> serves() override { return used_; }
    const char* serves_phase() const override { return "use"; }
    bool roll_back(const std::string& phase, const Failure& why) override;
    bool computes() const override { return true; }
    void commit() override;
    StepCall call_of(const StepUse&) override;

  private:
    struct Opened { // a checkpoint, and the component for it; or why not
        Constructed component;
        std::optional<execution::ModelChoice> choice;
        std::string identity;
    };
    Opened open(const CandidateInputs&, host::Identity& to);
    struct Loaded { // for a component that is no longer, or not yet, in use
        std::unique_ptr<runner::LoadedWeights> weights;
        std::string identity; // as weights::model_identity()
        std::string dtype;    // of what is not quantised
        uint32_t position_length = 0; // as in ModelFacts
        std::weak_ptr<void> component; // expired: it is gone, and was never in use
    };
    Result<> exchange(const host::Component&, Loaded&);

    const Parts p_;
    execution::ModelExchange* const exchange_; // null: it cannot be exchanged
    host::Slot slot_;
    Loaded other_;                                     // during probation: the predecessor's
    Result<> used_;                                    // whether the current one took over
    std::mutex mutex_;
    std::map<const host::Component*, Loaded> waiting_; // of candidates
};

}  // namespace patchbay::engine
