// Passes of a draft model, which an executor keeps beside the target. They run between two steps of the target, while a
// proposer drafts.
#pragma once
#include "base/result.hpp"
#include "runner/batch.hpp"
#include "runner/sampled_rows.hpp"

namespace patchbay::execution {

struct StepOutput;

class DraftPasses { // [step thread]
  public:
    virtual ~DraftPasses() = default;

    virtual const runner::BatchForm& batch_form() const = 0;
    virtual uint32_t max_tokens() const = 0; // of a pass
    // Of a head: how many passes one propose() may have, and where pass number i keeps its hidden states.
    virtual uint32_t max_head_passes() const = 0;
    virtual uint32_t hidden_row(uint32_t pass) const = 0;
    // Logits of the batch's rows, or what `call` samples of them on the device.
    virtual Result<StepOutput> compute(const runner::Batch&, const runner::SampleCall* call) = 0;
};

}  // namespace patchbay::execution
