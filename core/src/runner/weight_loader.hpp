// Loads a model's weights from its files onto the device, each in the form that is wanted of it.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "runner/between_steps.hpp"
#include "runner/loaded_weights.hpp"
#include "runner/open_device.hpp"
#include "runner/ranks.hpp"
#include "weights/loader.hpp"

namespace patchbay::runner {

struct WeightsToLoad {
    const host::Component& model;
    const pb_model_facts& facts; // the model's
    const weights::WeightSource& source;
    const weights::WeightForm& form; // as most are wanted
};

using TargetWeights = std::array<pb_weight*, 3>; // that a head takes from its target, by pb_target_weight

class WeightLoader {
  public:
    // ranks: null: it is alone. of_target: null: the model is no head.
    WeightLoader(const OpenDevice& device, const Ranks* ranks, const TargetWeights* of_target)
        : device_(device), ranks_(ranks), rank_(ranks ? ranks->wire().rank : 0), size_(ranks ? ranks->wire().size : 1),
          of_target_(of_target) {}

    // What was placed when it fails is in `into` too. Ends early where the other ranks do not go on. `run`: for what
    // the device does.
    Result<> load(const WeightsToLoad&, LoadedWeights& into, const BetweenSteps& run) const;

  private:
    // Of another weight or of the target's; none: it is to be loaded.
    Result<std::optional<pb_weight*>> existing(uint32_t index, const pb_weight_spec&, const LoadedWeights&) const;
    Result<weights::LoadedWeight> read(const WeightsToLoad&, uint32_t index, const pb_weight_spec&,
                                       const AttentionSinks&, std::vector<float>& filled,
                                       weights::LoadedWeight reuse) const;
    Result<> place(const WeightsToLoad&, uint32_t index, const pb_weight_spec&, const weights::LoadedWeight&,
                   LoadedWeights& into, const BetweenSteps& run, uint64_t& bytes) const;
    Result<pb_weight*> prepare(const host::Component& model, const pb_weight_spec&, const weights::LoadedWeight&) const;

    const OpenDevice& device_;
    const Ranks* const ranks_;
    const uint32_t rank_, size_;
    const TargetWeights* const of_target_;
};

}  // namespace patchbay::runner
