#include "runner/kv_room.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "config/step_limits.hpp"
#include "runner/model_runner.hpp"

namespace patchbay::runner {

namespace {

// Rows that take of a sampler on the device what rows of a step can: all have a mask, penalties, and as many highest
// log-probabilities as it accepts. Their histories are as long as the batch's sequences: longer ones take more of its
// inputs, a few bytes a token, which the KV of these tokens outweighs by far.
class LargestRows {
  public:
    LargestRows(const host::Component& sampler, uint32_t count, uint32_t history, uint32_t vocab, uint32_t max_logprobs)
        : sampler_(sampler), history_(history), mask_((vocab + 31) / 32, ~0u) {
        for (uint32_t i = 0; i < history; ++i) history_[i] = static_cast<int32_t>(i % vocab);
        choose_params(max_logprobs);
        const pb_sample_row row{0, 0, history, &params_, history_.data(), history_.data(), history, 0, mask_.data(),
                                nullptr};
        rows_.assign(count, row);
    }
    LargestRows(const LargestRows&) = delete;

    uint32_t max_logprobs() const { return params_.logprobs - 1; }
    SampleCall call() const {
        pb_sample_batch b{};
        b.struct_size = sizeof b;
        b.row_count = static_cast<uint32_t>(rows_.size());
        b.row_stride = sizeof(pb_sample_row);
        b.max_logprobs = max_logprobs();
        b.rows = rows_.data();
        return {sampler_, b};
    }

  private:
    bool accepts(const pb_sampling_params& p) const {
        const bool takes_all = sampler_.table<pb_sampler>()->accepts == nullptr;
        return takes_all || host::checked<&pb_sampler::accepts>(sampler_, &p);
    }
    void choose_params(uint32_t max_logprobs) {
        params_ = sized<pb_sampling_params>();
        params_.top_p = params_.repetition_penalty = 1;
        params_.logprobs = 1;
        pb_sampling_params all = params_;
        all.temperature = 1;
        all.top_p = 0.9f;
        all.repetition_penalty = 1.1f;
        all.presence_penalty = all.frequency_penalty = 0.1f;
        if (accepts(all)) params_ = all;
        uint32_t low = 0, high = max_logprobs + 1; // so many it accepts, so many it does not, or no request has
        while (high - low > 1) {
            params_.logprobs = low + (high - low) / 2 + 1;
            (accepts(params_) ? low : high) = params_.logprobs - 1;
        }
        params_.logprobs = low + 1;
    }

    const host::Component& sampler_;
    std::vector<int32_t> history_;
    std::vector<uint32_t> mask_;
    pb_sampling_params params_{};
    std::vector<pb_sample_row> rows_;
};

// Of `total`, the share of sequence s of so many.
uint32_t share_of(uint32_t total, uint32_t s, uint32_t sequences) {
    return total / sequences + (s < total % sequences ? 1 : 0);
}

Result<> run_and_sample(ModelRunner& runner, const Batch& batch, uint32_t history, const RunnerSettings& settings) {
    Passes& passes = runner.passes();
    if (!settings.sampler) {
        PB_CHECK(passes.forward(batch));
        return {};
    }
    const uint32_t vocab = runner.model().facts().vocab_size;
    const LargestRows rows(*settings.sampler, static_cast<uint32_t>(batch.arrays().logit_rows.size()), history, vocab,
                           config::max_top_logprobs(settings, vocab));
    PB_CHECK(passes.reserve_samples(rows.call().batch.row_count, rows.max_logprobs()));
    PB_CHECK(passes.forward(batch, rows.call()));
    return {};
}

}  // namespace

Result<> run_largest(ModelRunner& runner, const RunnerSettings& settings, uint32_t rows) {
    Passes& passes = runner.passes();
    const KvMemory& kv = runner.kv();
    const uint32_t sequences = std::clamp(settings.max_num_seqs, 1u, settings.max_num_batched_tokens);
    const uint64_t longest = uint64_t{sequences} * std::max(kv.max_seq_len(), 1u); // of all together
    const auto tokens = static_cast<uint32_t>(std::min<uint64_t>(settings.max_num_batched_tokens, longest));
    const uint32_t length = share_of(tokens, 0, sequences), wanted = std::min(rows, tokens);
    const auto blocks_of = [&](uint64_t n) { return (n + settings.block_size - 1) / settings.block_size; };
    const BatchForm& form = kv.batch_form();
    kv::BlockTable table;
    table.pages.assign(form.token_groups + form.state_groups, std::vector<kv::BlockId>(blocks_of(length), 0));
    const std::vector<int32_t> all(length); // token ids; and of a head rows of hidden states, of which any will do
    Batch largest;
    largest.clear(form);
    for (uint32_t s = 0; s < sequences; ++s) {
        const auto ids = std::span(all).first(share_of(tokens, s, sequences));
        largest.add({ids, 0, share_of(wanted, s, sequences), table, ids});
    }
    if (passes.hidden_size() > 0) largest.want_hidden({0, tokens}); // for embeddings
    largest.finish();
    // The pages of the longest sequences are listed for the device, too.
    const uint64_t listed = uint64_t{sequences} * blocks_of(std::max(kv.max_seq_len(), length)) * form.token_groups;
    PB_CHECK(passes.reserve({tokens, sequences, tokens, listed}));
    if (const auto done = run_and_sample(runner, largest, length, settings); !done)
        return fail(StatusCode::kExhausted, "gpu_memory_utilization, a pass over " + std::to_string(tokens) +
                                                " tokens: " + done.error());
    return {};
}

Result<uint64_t> memory_left(const OpenDevice& device, double share) {
    pb_device_info now = sized<pb_device_info>();
    PB_CHECK(device.plugin.checked<&pb_device::info>(&now));
    const uint64_t used = now.memory_total - std::min(now.memory_total, now.memory_free);
    const auto its = static_cast<uint64_t>(static_cast<double>(now.memory_total) * share);
    return its - std::min(its, used);
}

}  // namespace patchbay::runner
