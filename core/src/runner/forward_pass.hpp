// One call of the model's forward: what it is given, and where its hidden states go for a head. Part of a ModelRunner's
// passes.
#pragma once
#include "runner/layer_calls.hpp"

namespace patchbay::runner {

class ForwardPass {
  public:
    ForwardPass(const PassContext& context, LayerCalls& calls) : c_(context), calls_(calls) {}

    enum class Hidden { kUnwanted, kWanted };
    pb_forward prepare(const PlacedInputs&, Hidden);
    Result<> compute(const pb_forward&, uint64_t& ns) const; // ns: its time is added there
    // Ids below 0 of a batch, which are not known here: rows of `sampled` (rows) i32.
    void fill_placeholders(const Batch&, const PlacedInputs&, const pb_tensor& sampled) const;
    // Of a head, after its pass: the hidden states of the batch's logit rows, for its next one.
    void keep_hidden(const pb_forward&, const Batch&, size_t rows) const;

  private:
    const PassContext c_;
    LayerCalls& calls_;
};

}  // namespace patchbay::runner
