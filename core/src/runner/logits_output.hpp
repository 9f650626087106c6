// Logits on their way to host memory. Part of a ModelRunner's passes.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "patchbay/abi/tensor.h"
#include "runner/open_device.hpp"

namespace patchbay::runner {

class LogitsOutput {
  public:
    explicit LogitsOutput(const OpenDevice& device) : device_(device) {}

    // The first rows of logits (rows, vocab) f32, which lie in the device's memory: where they lie, if the host can
    // read it, else a copy. Valid until the next call.
    Result<std::span<float>> fetch(const pb_tensor& logits, size_t rows);

  private:
    const OpenDevice& device_;
    std::vector<float> copy_;
};

}  // namespace patchbay::runner
