// What else reads a step's logits: verification of drafts. Called by the sampler's port.
#pragma once
#include <span>

#include "base/result.hpp"

namespace patchbay::host {
class Component;
}

namespace patchbay::engine {

struct SampleRows;
struct StepSamples;

// It reads the logits before the sampler, which may write into them, and may have the last word on rows.
class LogitsReader {
  public:
    virtual ~LogitsReader() = default;
    virtual Result<> read(const host::Component& sampler, const SampleRows&, std::span<const float> logits) = 0;
    virtual void decide(StepSamples&) = 0;
};

}  // namespace patchbay::engine
