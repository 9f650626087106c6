// Hidden states on their way to host memory, for embeddings. Part of a ModelRunner's passes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "runner/batch.hpp"
#include "runner/open_device.hpp"

namespace patchbay::runner {

class HiddenOutput {
  public:
    explicit HiddenOutput(const OpenDevice& device) : device_(device) {}

    // Elements of a hidden state; 0: the model does not give them, or in no dtype that is read here.
    uint32_t width(const pb_model_facts&) const;
    void clear() { out_.clear(); }
    // states (tokens, width) in the device's memory and its activation_dtype.
    Result<> append(const pb_tensor& states, std::span<const TokenRange>);
    // One range after the other: (tokens, width) f32; valid until it changes.
    std::span<const float> states() const { return out_; }

  private:
    const OpenDevice& device_;
    std::vector<float> out_;
    std::vector<std::byte> bytes_; // as the device has them
};

}  // namespace patchbay::runner
