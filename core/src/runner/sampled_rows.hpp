// The rows that a sampler on the device samples in a step, and what they became. Used by those who run a step.
#pragma once
#include <cstdint>
#include <span>

#include "patchbay/abi/sampler.h"

namespace patchbay::host {
class Component;
}

namespace patchbay::runner {

struct SampleCall {
    const host::Component& sampler; // on the device
    pb_sample_batch batch;          // rows; what is of logits and outputs is not looked at
};

struct SampledRows { // of one step, in host memory, by row
    std::span<const int32_t> tokens, top_tokens;
    std::span<const float> logprobs, top_logprobs;
    uint32_t max_logprobs = 0, faults = 0;
};

}  // namespace patchbay::runner
