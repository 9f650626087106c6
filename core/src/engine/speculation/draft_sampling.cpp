#include "engine/speculation/draft_sampling.hpp"

#include <algorithm>
#include <cmath>

#include "base/refusals.hpp"
#include "engine/request/request.hpp"
#include "engine/request/sequence.hpp"
#include "engine/sampling/sample_rows.hpp"
#include "engine/speculation/verification.hpp"
#include "execution/synthetic_tokens.hpp"
#include "host/runner_rules.hpp"
#include "host/slot.hpp"
#include "patchbay/sdk/philox.hpp"
#include "patchbay/sdk/row_logprobs.hpp"
#include "patchbay/sdk/tensor.hpp"
#include "runner/device_sampling.hpp"

namespace patchbay::engine {

void DraftSampling::begin(const pb_runner_batch& b, std::span<const DraftSpans::Span> spans) {
    begin_without_rows();
    const uint32_t vocab = p_.form.facts.vocab_size;
    draws_ = b.row_count > 0 && p_.form.computes && host::probs_of(b, 0, vocab);
    params_.clear();
    params_.reserve(spans.size());
    asked_.clear();
    for (const DraftSpans::Span& span : spans) {
        if (!span.asked) continue;
        const Sequence& s = *span.sequence;
        params_.push_back(s.sampling.params);
        params_.back().logprobs = b.logprobs || b.top_count > 0 ? b.top_count + 1 : 0;
        rows_.push_back(p_.rows.row(s, s.drafts));
        rows_.back().params = &params_.back();
        rows_.back().seed ^= p_.form.noise;
        asked_.push_back(*span.asked);
    }
    batch_ = {};
    batch_.struct_size = sizeof batch_;
    batch_.row_count = static_cast<uint32_t>(rows_.size());
    batch_.row_stride = sizeof(pb_sample_row);
    batch_.max_logprobs = b.top_count;
    batch_.logits = tensor(static_cast<float*>(nullptr), PB_F32, {static_cast<int64_t>(rows_.size()), vocab});
    batch_.rows = rows_.data();
}

void DraftSampling::begin_without_rows() {
    rows_.clear();
    draws_ = false;
}

runner::SampleCall DraftSampling::call() const { return {p_.sampler.current(), batch_}; }

Result<bool> DraftSampling::is_on_device() const {
    const bool on_device = runner::runs_on_device(p_.sampler.current());
    if (draws_ && on_device) return unsupported("probabilities of a sampler that runs on a device");
    return p_.form.computes && !rows_.empty() && on_device;
}

Result<runner::SampledRows> DraftSampling::sample(std::span<float> logits) {
    if (rows_.empty()) return runner::SampledRows{};
    const host::Component& sampler = p_.sampler.current();
    pb_sample_batch b = batch_;
    const size_t n = b.row_count, top = n * b.max_logprobs;
    tokens_.assign(n, -1);
    logprobs_.assign(n, 0);
    top_tokens_.assign(top, -1);
    top_logprobs_.assign(top, 0);
    faults_.assign(n, 0);
    b.logits.data = logits.data();
    b.tokens = tokens_.data();
    b.logprobs = logprobs_.data();
    b.top_tokens = top_tokens_.data();
    b.top_logprobs = top_logprobs_.data();
    b.faults = faults_.data();
    if (draws_) PB_CHECK(draw_rows(b, logits));
    const std::vector<TokenId> drawn = draws_ ? tokens_ : std::vector<TokenId>();
    const std::vector<float> logprobs = draws_ ? logprobs_ : std::vector<float>();
    PB_CHECK(host::checked<&pb_sampler::sample>(sampler, &b));
    for (size_t i = 0; i < drawn.size(); ++i) {
        if (drawn[i] >= 0) tokens_[i] = drawn[i], logprobs_[i] = logprobs[i];
        else if (tokens_[i] >= 0) drawn_from_[i * p_.form.facts.vocab_size + static_cast<size_t>(tokens_[i])] = 1;
    }
    return runner::SampledRows{tokens_, top_tokens_, logprobs_, top_logprobs_, b.max_logprobs,
                               static_cast<uint32_t>(std::ranges::count(faults_, 1))};
}

// The tokens of rows with a temperature, and what all are drawn from. Before sample(), which may write into logits.
Result<> DraftSampling::draw_rows(pb_sample_batch b, std::span<float> logits) {
    const host::Component& sampler = p_.sampler.current();
    if (!host::table_of<pb_sampler>(sampler).process)
        return unsupported("sampler '" + std::string(sampler.type().name) + "' has no process()");
    const size_t vocab = p_.form.facts.vocab_size;
    drawn_from_.assign(logits.begin(), logits.begin() + static_cast<ptrdiff_t>(b.row_count * vocab));
    b.logits.data = drawn_from_.data();
    PB_CHECK(host::checked<&pb_sampler::process>(sampler, &b));
    tokens_.assign(b.row_count, -1);
    for (size_t i = 0; i < b.row_count; ++i) {
        const pb_sample_row& row = rows_[i];
        const std::span<float> from = std::span(drawn_from_).subspan(i * vocab, vocab);
        if (row.params->temperature == 0) { // one token has it all: the one that sample() gives
            std::ranges::fill(from, 0.0f);
            continue;
        }
        for (float& p : from) p = std::exp(p);
        tokens_[i] = draw_token(from, draw(row.seed, row.position, Stream::kDraft, 1));
        if (row.params->logprobs == 0 || tokens_[i] < 0) continue;
        const auto raw = logits.subspan(i * vocab, vocab);
        logprobs_[i] = static_cast<float>(raw[static_cast<size_t>(tokens_[i])] - log_sum_exp(raw));
    }
    return {};
}

void DraftSampling::hand_out(const runner::SampledRows& sampled, pb_runner_batch& b) const {
    const uint32_t vocab = p_.form.facts.vocab_size;
    for (size_t i = 0; i < asked_.size(); ++i) {
        const size_t to = asked_[i], top = b.top_count;
        const TokenId token = sampled.tokens[i];
        if (token < 0 || static_cast<uint32_t>(token) >= vocab) continue;
        b.tokens[to] = token;
        if (draws_)
            std::copy_n(drawn_from_.begin() + static_cast<ptrdiff_t>(i * vocab), vocab,
                        host::probs_of(b, static_cast<uint32_t>(to), vocab));
        if (b.logprobs) b.logprobs[to] = sampled.logprobs[i];
        std::copy_n(sampled.top_tokens.begin() + static_cast<ptrdiff_t>(i * top), top, b.top_tokens + to * top);
        std::copy_n(sampled.top_logprobs.begin() + static_cast<ptrdiff_t>(i * top), top, b.top_logprobs + to * top);
    }
}

// The token that the target's place will have, or another one.
void DraftSampling::make_up(std::span<const DraftSpans::Span> spans, pb_runner_batch& b) const {
    const uint32_t vocab = p_.form.facts.vocab_size;
    for (const DraftSpans::Span& span : spans) {
        if (!span.asked) continue;
        const Sequence& s = *span.sequence;
        const uint64_t position = s.tokens.size();
        const TokenId right =
            execution::synthetic_token(s.sampling.seed, position, vocab, p_.eos, s.request->sampling.stop_token_ids);
        const bool accepted = uniform(draw(s.sampling.seed, position, Stream::kDraft, 0)[0]) < p_.form.acceptance;
        b.tokens[*span.asked] = accepted ? right : static_cast<TokenId>((static_cast<uint32_t>(right) + 1) % vocab);
        if (float* probs = host::probs_of(b, *span.asked, vocab)) {
            std::fill_n(probs, vocab, 0.0f);
            probs[b.tokens[*span.asked]] = 1;
        }
    }
}

}  // namespace patchbay::engine
