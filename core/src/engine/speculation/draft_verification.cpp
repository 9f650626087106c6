#include "engine/speculation/draft_verification.hpp"

#include <cmath>

#include "engine/request/sequence.hpp"
#include "engine/sampling/sample_rows.hpp"
#include "engine/sampling/step_samples.hpp"
#include "engine/speculation/draft_records.hpp"
#include "execution/executor.hpp"
#include "host/component.hpp"
#include "host/slot.hpp"
#include "patchbay/sdk/row_logprobs.hpp"
#include "patchbay/sdk/tensor.hpp"
#include "runner/device_sampling.hpp"

namespace patchbay::engine {

DraftVerification::DraftVerification(const config::SpeculationSettings& settings, uint32_t vocab_size,
                                     DraftRecords& drafts)
    : settings_(settings), vocab_size_(vocab_size), drafts_(drafts) {
    if (settings.rejection_sample_method == config::Verification::kSynthetic)
        synthetic_.emplace(settings.synthetic_acceptance_rates);
}

Result<> check_verification(const config::SpeculationSettings& settings, const host::Component& c,
                            execution::TokenSource tokens) {
    if (settings.rejection_sample_method != config::Verification::kRejection) return {};
    if (tokens != execution::TokenSource::kModel)
        return fail(StatusCode::kUnsupported,
                    "rejection_sample_method: rejection on a device that computes nothing: there are "
                    "no probabilities (choose match, or synthetic)");
    if (runner::runs_on_device(c) || !host::table_of<pb_sampler>(c).process)
        return fail(StatusCode::kUnsupported,
                    "rejection_sample_method: rejection needs a sampler that gives its probabilities to the host, and "
                    "'" + std::string(c.type().name) +
                    "' does not (choose standard, or rejection_sample_method: match)");
    return {};
}

// By draft of rows with a temperature, in the step's order. Rows at temperature 0 are left to be matched: their
// distribution has one token.
Result<std::vector<float>> DraftVerification::target_probabilities(const host::Component& c, const SampleRows& all,
                                                                   std::span<const float> logits) const {
    std::vector<pb_sample_row> rows;
    std::vector<float> out;
    for (const Placed& item : step_) {
        if (item.sequence->sampling.params.temperature == 0) continue;
        for (uint32_t j = 0; j + 1 < item.rows; ++j) {
            const auto row = logits.subspan(size_t{item.first_row + j} * vocab_size_, vocab_size_);
            rows.push_back(all.rows[item.first_row + j]);
            out.insert(out.end(), row.begin(), row.end());
        }
    }
    if (rows.empty()) return out;
    std::vector<TokenId> tokens(rows.size());
    std::vector<float> logprobs(rows.size());
    pb_sample_batch b{};
    b.struct_size = sizeof b;
    b.row_count = static_cast<uint32_t>(rows.size());
    b.row_stride = sizeof(pb_sample_row);
    b.logits = tensor(out.data(), PB_F32, {static_cast<int64_t>(rows.size()), vocab_size_});
    b.rows = rows.data();
    b.tokens = tokens.data();
    b.logprobs = logprobs.data();
    PB_CHECK(host::checked<&pb_sampler::process>(c, &b));
    for (float& p : out) p = std::exp(p);
    return out;
}

Result<> DraftVerification::read(const host::Component& c, const SampleRows& rows, std::span<const float> logits) {
    decisions_.clear();
    if (!is_by_rejection()) return {};
    PB_TRY(const std::vector<float> target, target_probabilities(c, rows, logits));
    std::span<const float> next = target;
    for (const Placed& item : step_) {
        if (item.sequence->sampling.params.temperature == 0 || item.rows < 2) continue;
        const size_t values = size_t{item.rows - 1} * vocab_size_;
        verify(item, rows, logits, next.first(values));
        next = next.subspan(values);
    }
    return {};
}

// target: (drafts, vocab).
void DraftVerification::verify(const Placed& item, const SampleRows& rows, std::span<const float> logits,
                               std::span<const float> target) {
    const Sequence& s = *item.sequence;
    const DraftRecord& drafts = drafts_.of(s.id);
    const size_t vocab = vocab_size_;
    for (uint32_t j = 0; j + 1 < item.rows; ++j) {
        const pb_sample_row& row = rows.rows[item.first_row + j];
        const TokenId draft = s.tokens[item.confirmed + j];
        const auto from = std::span(drafts.probs).subspan(j * vocab, drafts.drawn[j] ? vocab : 0);
        const TokenId token =
            verify_by_rejection(target.subspan(j * vocab, vocab), from, draft, row.seed, row.position);
        if (token < 0) break; // no token has a probability: what the sampler makes of it counts
        Decision d{item.first_row + j, token, 0};
        if (s.sampling.params.logprobs > 0) {
            const auto raw = logits.subspan(d.row * vocab, vocab);
            d.logprob = static_cast<float>(raw[static_cast<size_t>(token)] - log_sum_exp(raw));
        }
        decisions_.push_back(d);
        if (token != draft) break;
    }
}

void DraftVerification::decide(StepSamples& samples) {
    for (const Decision& d : decisions_) {
        samples.tokens[d.row] = d.token;
        samples.logprobs[d.row] = d.logprob;
    }
}

void DraftVerification::accept_by_rates(StepSamples& samples) const {
    if (!synthetic_) return;
    for (const Placed& item : step_)
        for (uint32_t j = 0; j + 1 < item.rows; ++j) {
            const Sequence& s = *item.sequence;
            const TokenId draft = s.tokens[item.confirmed + j];
            TokenId& token = samples.tokens[item.first_row + j];
            const auto another = static_cast<TokenId>((static_cast<uint32_t>(draft) + 1) % vocab_size_);
            const bool accepted = synthetic_->accepts(j, s.sampling.seed, item.confirmed + j);
            if (accepted) token = draft;
            else if (token == draft) token = another;
            if (!accepted) break;
        }
}

}  // namespace patchbay::engine
