// The weights of a ModelRunner's model on the device: those in use, and those of another model loaded beside them.
#pragma once
#include <memory>
#include <optional>
#include <span>

#include "base/result.hpp"
#include "runner/weight_loader.hpp"

namespace patchbay::runner {

class DeviceWeights {
  public:
    // Both outlive it. ranks: null: it is alone.
    DeviceWeights(const OpenDevice& device, const Ranks* ranks) : device_(device), ranks_(ranks) {}
    ~DeviceWeights() { release(in_use_); }
    DeviceWeights(const DeviceWeights&) = delete;
    DeviceWeights& operator=(const DeviceWeights&) = delete;

    const LoadedWeights& in_use() const { return in_use_; }
    // Once. `layers`: what each keeps.
    Result<> load(const WeightsToLoad&, std::span<const pb_kv_spec> layers);
    // Of a head: its token table and lm head are the target's from then on. Before load().
    Result<> share_target_weights(const DeviceWeights& target, const host::Component& model, const pb_model_facts&);

    // [any thread, beside steps] `run`: for what the device does, between steps.
    Result<std::unique_ptr<LoadedWeights>> load_beside(const WeightsToLoad&, std::span<const pb_kv_spec> layers,
                                                       const BetweenSteps& run) const;
    void use(LoadedWeights& other) { std::swap(in_use_, other); } // which are then those that were in use
    void release(LoadedWeights&) const;

  private:
    WeightLoader loader() const { return {device_, ranks_, of_target_ ? &*of_target_ : nullptr}; }

    const OpenDevice& device_;
    const Ranks* const ranks_;
    LoadedWeights in_use_;
    std::optional<TargetWeights> of_target_; // of a head
};

}  // namespace patchbay::runner
