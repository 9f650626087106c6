// patchbay/sdk/row_logprobs.hpp - for samplers: the allowed-token mask, and the log-probabilities that a row asks for.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "patchbay/sdk/sampler.hpp"

namespace patchbay {

inline bool allowed(const pb_sample_row& row, size_t token) {
    return !row.allowed || (row.allowed[token / 32] >> (token % 32) & 1u);
}

inline int32_t first_allowed(const pb_sample_row& row, size_t vocab) {
    for (size_t t = 0; t < vocab; ++t)
        if (allowed(row, t)) return static_cast<int32_t>(t);
    return 0;
}

// log(sum(exp(x))) in double; NaN counts as -inf.
inline double log_sum_exp(std::span<const float> x) {
    float most = -INFINITY;
    for (const float v : x) most = v > most ? v : most;
    if (!(most > -INFINITY)) return -INFINITY;
    double sum = 0;
    for (const float v : x)
        if (!std::isnan(v)) sum += std::exp(static_cast<double>(v) - most);
    return most + std::log(sum);
}

// Fills logprobs and the top lists of row i from its raw logits, if the row asks for them.
inline void write_logprobs(SampleBatch& batch, uint32_t i, int32_t token) {
    const int32_t wanted = batch.row(i).params->logprobs;
    if (wanted < 0) return;
    const auto logits = batch.logits(i);
    const double norm = log_sum_exp(logits);
    const auto logprob = [&](int32_t t) { return static_cast<float>(logits[static_cast<size_t>(t)] - norm); };
    batch.raw.logprobs[i] = logprob(token);
    const auto n = std::min<size_t>({static_cast<size_t>(wanted), batch.raw.max_logprobs, logits.size()});
    if (n == 0) return;
    std::vector<int32_t> order(logits.size());
    for (size_t t = 0; t < order.size(); ++t) order[t] = static_cast<int32_t>(t);
    const auto rank = [&](int32_t t) {
        return std::isnan(logits[static_cast<size_t>(t)]) ? -INFINITY : logits[static_cast<size_t>(t)];
    };
    std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(n), order.end(),
                      [&](int32_t a, int32_t b) { return rank(a) != rank(b) ? rank(a) > rank(b) : a < b; });
    for (size_t k = 0; k < n; ++k) {
        batch.raw.top_tokens[size_t{i} * batch.raw.max_logprobs + k] = order[k];
        batch.raw.top_logprobs[size_t{i} * batch.raw.max_logprobs + k] = logprob(order[k]);
    }
}

}  // namespace patchbay
