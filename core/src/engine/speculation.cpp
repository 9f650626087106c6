// Verification of drafts other than by comparing them with what is sampled. Either way a draft's row becomes the draft,
// where it is accepted, or another token: what appends tokens sees no difference.
#include <algorithm>
#include <cmath>

#include "engine/state.hpp"
#include "patchbay/sdk/row_logprobs.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::engine {

Result<> Engine::State::check_speculation(const host::Component& c) const {
    if (!by_rejection()) return {};
    if (facts.simulated) return fail("rejection_sample_method: rejection on a device that computes nothing: there are "
                                     "no probabilities (choose match, or synthetic)");
    if (runner::runs_on_device(c) || !host::table_of<pb_sampler>(c).process)
        return fail("rejection_sample_method: rejection needs a sampler that gives its probabilities to the host, and "
                    "'" + std::string(c.type().name) +
                    "' does not (choose standard, or rejection_sample_method: match)");
    return {};
}

uint32_t Engine::State::choose_draft_length() {
    const auto decoding = std::ranges::count_if(running, [](const Sequence* s) { return s->decoding(); });
    if (draft_length && decoding > 0) draft_length->choose(static_cast<uint32_t>(decoding));
    return report.draft_length = draft_length ? draft_length->chosen() : settings.num_speculative_tokens;
}

void Engine::State::keep_draft(Sequence& s, TokenId token, std::span<const float> from) {
    if (s.drafts == 0) s.drafts_drawn.clear(), s.draft_probs.clear();
    s.tokens.push_back(token);
    s.drafts += 1;
    if (!by_rejection()) return;
    const bool drawn = !from.empty() && from[static_cast<size_t>(token)] > 0; // else it cannot have been drawn
    s.drafts_drawn.push_back(drawn);
    if (drawn) s.draft_probs.insert(s.draft_probs.end(), from.begin(), from.end());
    else s.draft_probs.resize(s.draft_probs.size() + facts.vocab_size);
}

// Rows at temperature 0 are left to be matched: their distribution has one token.
Result<> Engine::State::judge_drafts(const host::Component& c) {
    verdicts.clear();
    const size_t vocab = facts.vocab_size;
    std::vector<pb_sample_row> rows;
    judged.clear();
    for (const Scheduled& item : scheduled) {
        if (item.sequence->params.temperature == 0) continue;
        for (uint32_t j = 0; j + 1 < item.rows; ++j) {
            const auto row = logits.subspan((item.first_row + j) * vocab, vocab);
            rows.push_back(sample_rows[item.first_row + j]);
            judged.insert(judged.end(), row.begin(), row.end());
        }
    }
    if (rows.empty()) return {};
    std::vector<TokenId> tokens(rows.size());
    std::vector<float> logprobs(rows.size());
    pb_sample_batch b{};
    b.struct_size = sizeof b;
    b.row_count = static_cast<uint32_t>(rows.size());
    b.row_stride = sizeof(pb_sample_row);
    b.logits = tensor(judged.data(), PB_F32, {static_cast<int64_t>(rows.size()), facts.vocab_size});
    b.rows = rows.data();
    b.tokens = tokens.data();
    b.logprobs = logprobs.data();
    PB_CHECK(host::checked<&pb_sampler::process>(c, &b));
    for (float& p : judged) p = std::exp(p);

    std::span<const float> next = judged;
    for (const Scheduled& item : scheduled) {
        const Sequence& s = *item.sequence;
        if (s.params.temperature == 0 || item.rows < 2) continue;
        const std::span<const float> target = next.first((item.rows - 1) * vocab);
        next = next.subspan(target.size());
        for (uint32_t j = 0; j + 1 < item.rows; ++j) {
            const pb_sample_row& row = sample_rows[item.first_row + j];
            const TokenId draft = s.tokens[item.confirmed + j];
            const auto from = std::span(s.draft_probs).subspan(j * vocab, s.drafts_drawn[j] ? vocab : 0);
            const TokenId token =
                verify_by_rejection(target.subspan(j * vocab, vocab), from, draft, row.seed, row.position);
            if (token < 0) break; // no token has a probability: what the sampler makes of it counts
            Verdict v{item.first_row + j, token, 0};
            if (s.params.logprobs >= 0) {
                const auto raw = logits.subspan(v.row * vocab, vocab);
                v.logprob = static_cast<float>(raw[static_cast<size_t>(token)] - log_sum_exp(raw));
            }
            verdicts.push_back(v);
            if (token != draft) break;
        }
    }
    return {};
}

void Engine::State::follow_verdicts() {
    for (const Verdict& v : verdicts) {
        sampled[v.row] = v.token;
        sampled_logprobs[v.row] = v.logprob;
    }
}

void Engine::State::accept_by_rates() {
    if (!synthetic) return;
    for (const Scheduled& item : scheduled)
        for (uint32_t j = 0; j + 1 < item.rows; ++j) {
            const Sequence& s = *item.sequence;
            const TokenId draft = s.tokens[item.confirmed + j];
            TokenId& token = sampled[item.first_row + j];
            const auto another = static_cast<TokenId>((static_cast<uint32_t>(draft) + 1) % facts.vocab_size);
            const bool accepted = synthetic->accepts(j, s.seed, item.confirmed + j);
            if (accepted) token = draft;
            else if (token == draft) token = another;
            if (!accepted) break;
        }
}

}  // namespace patchbay::engine
