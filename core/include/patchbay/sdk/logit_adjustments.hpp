// patchbay/sdk/logit_adjustments.hpp - for samplers: what changes a row's logits before a token is chosen: logit bias,
// penalties, DRY. Meanings as in OpenAI's and vLLM's APIs, see docs/sampling.md.
#pragma once
#include <span>
#include <unordered_map>

#include "patchbay/sdk/dry.hpp"
#include "patchbay/sdk/sampler.hpp"

namespace patchbay {

// Whether a penalty looks at how often tokens occurred.
inline bool counts_tokens(const pb_sampling_params& p) {
    return p.repetition_penalty != 1 || p.presence_penalty != 0 || p.frequency_penalty != 0;
}

// Repetition penalty over prompt and output, presence and frequency penalty over output.
inline void penalise_tokens(std::span<float> logits, const pb_sample_row& row) {
    const pb_sampling_params& p = *row.params;
    std::unordered_map<int32_t, uint32_t> counts; // of output tokens; prompt tokens appear with 0
    for (uint32_t i = 0; i < row.prompt_count; ++i) counts.emplace(row.prompt[i], 0);
    for (uint32_t i = 0; i < row.output_count; ++i) counts[row.output[i]] += 1;
    for (const auto& [token, count] : counts) {
        float& x = logits[static_cast<size_t>(token)];
        x = x > 0 ? x / p.repetition_penalty : x * p.repetition_penalty;
        if (count > 0) x -= p.presence_penalty + p.frequency_penalty * static_cast<float>(count);
    }
}

// Whether adjust_logits() changes anything.
inline bool adjusts_logits(const pb_sampling_params& p) {
    return p.logit_bias_count > 0 || counts_tokens(p) || p.dry_multiplier > 0;
}

// Logit bias, then the penalties, then DRY: what comes before temperature and truncation. logits: of the row, (vocab).
inline void adjust_logits(std::span<float> logits, const pb_sample_row& row) {
    const pb_sampling_params& p = *row.params;
    for (uint32_t i = 0; i < p.logit_bias_count; ++i)
        if (const auto t = static_cast<size_t>(p.logit_bias[i].token); t < logits.size())
            logits[t] += p.logit_bias[i].bias;
    if (counts_tokens(p)) penalise_tokens(logits, row);
    if (p.dry_multiplier > 0) penalise_repetitions(logits, row);
}

}  // namespace patchbay
