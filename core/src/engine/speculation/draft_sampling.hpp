// Drafts out of a pass's logits: sampled as the request samples, drawn where they are accepted by rejection, or made up
// where nothing is computed. Part of DraftModel.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/speculation/draft_load.hpp"
#include "engine/speculation/draft_spans.hpp"
#include "runner/sampled_rows.hpp"

namespace patchbay::host {
class Slot;
}

namespace patchbay::engine {

class SampleRowBuilder;

class DraftSampling {
  public:
    struct Parts { // which outlive it
        const DraftForm& form;
        const host::Slot& sampler;    // the engine's
        const SampleRowBuilder& rows;
        std::span<const TokenId> eos; // for made-up tokens
    };
    explicit DraftSampling(const Parts& parts) : p_(parts) {}

    // A row for each that a proposer requests of a pass; none where it only keeps the model's KV up to date.
    void begin(const pb_runner_batch&, std::span<const DraftSpans::Span>);
    void begin_without_rows();
    // To be sampled in the pass, on the device; a failure: what is wanted of the drafts does not go there.
    Result<bool> is_on_device() const;
    runner::SampleCall call() const;

    // (rows, vocab) in host memory, which it may write into. What it gives is valid until the next begin().
    Result<runner::SampledRows> sample(std::span<float> logits);
    // Into the proposer's batch.
    void hand_out(const runner::SampledRows&, pb_runner_batch&) const;
    void make_up(std::span<const DraftSpans::Span>, pb_runner_batch&) const;

  private:
    Result<> draw_rows(pb_sample_batch, std::span<float> logits);

    const Parts p_;
    std::vector<pb_sample_row> rows_;
    std::vector<pb_sampling_params> params_;
    std::vector<uint32_t> asked_;      // by row: of the proposer's batch
    pb_sample_batch batch_{};          // of the rows, but for what is written
    std::vector<TokenId> tokens_, top_tokens_;
    std::vector<float> logprobs_, top_logprobs_;
    std::vector<int32_t> faults_;      // by row: 1 where there was nothing to choose from
    bool draws_ = false;               // the proposer wants what its tokens are drawn from
    std::vector<float> drawn_from_;    // by row: that
};

}  // namespace patchbay::engine
