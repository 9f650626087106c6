// The attention sinks of a model's layers: weights whose numbers attention reads, so they lie in the device's memory as
// plain f32. Part of the ModelRunner's weights.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "host/component.hpp"
#include "patchbay/abi/model.h"

namespace patchbay::runner {

class AttentionSinks {
  public:
    // Which weights they are, as the model's kv_spec() says; refused where such a weight is no vector of the heads.
    static Result<AttentionSinks> of(const host::Component& model, uint32_t layer_count);

    bool are_in(uint32_t weight) const; // of some layer
    // Of all layers that have them in this weight. values: f32, (heads).
    Result<> place(const host::Device&, uint32_t weight, std::span<const std::byte> values);
    void release(const host::Device&); // the memory

    const float* of(uint32_t layer) const { // (heads), in the device's memory; null: none
        return layer < placed_.size() ? static_cast<const float*>(placed_[layer]) : nullptr;
    }

  private:
    std::vector<uint32_t> weights_; // by layer: 1 + the index; 0: none
    std::vector<void*> placed_;     // by layer, each memory of its own
};

}  // namespace patchbay::runner
