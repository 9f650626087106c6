// patchbay/sdk/row_logprobs.hpp - for samplers: the likeliest token, and the log-probabilities that a row asks for.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "patchbay/sdk/highest.hpp"
#include "patchbay/sdk/sampler.hpp"

namespace patchbay {

// The highest allowed logit's token, of equal ones the lowest; −1 where all are NaN or −infinity.
inline int32_t likeliest(std::span<const float> logits, const pb_sample_row& row) {
    if (!row.allowed) {
        const float max_logit = highest(logits);
        if (!(max_logit > -INFINITY)) return -1;
        return static_cast<int32_t>(std::find(logits.begin(), logits.end(), max_logit) - logits.begin());
    }
    Candidate best{-1, -INFINITY};
    for (size_t t = 0; t < logits.size(); ++t)
        if (logits[t] > best.logit && allowed(row, t)) best = {static_cast<int32_t>(t), logits[t]};
    return best.token;
}

// log(sum(exp(x))), summed in double; NaN counts as −inf.
inline double log_sum_exp(std::span<const float> x) {
    const float max_logit = highest(x);
    if (!(max_logit > -INFINITY)) return -INFINITY;
    double sum = 0;
    for (const float v : x)
        if (v > max_logit - 80) sum += std::exp(v - max_logit); // the others together are below 1e-34 of it, each
    return max_logit + std::log(sum);
}

// Fills logprobs and the top lists of row i from its raw logits, if the row asks for them.
inline void write_logprobs(SampleBatch& batch, uint32_t i, int32_t token) {
    const uint32_t wanted = batch.row(i).params->logprobs;
    if (wanted == 0) return;
    const auto logits = batch.logits(i);
    const double norm = log_sum_exp(logits);
    const auto logprob = [&](int32_t t) { return static_cast<float>(logits[static_cast<size_t>(t)] - norm); };
    batch.raw.logprobs[i] = logprob(token);
    const auto n = std::min<size_t>({size_t{wanted - 1}, batch.raw.max_logprobs, logits.size()});
    if (n == 0) return;
    std::vector<Candidate> top;
    Highest kept(n, top);
    for (size_t t = 0; t < logits.size(); ++t) kept.offer(static_cast<int32_t>(t), logits[t]);
    kept.finish();
    std::sort(top.begin(), top.end(), likelier);
    for (size_t t = 0; top.size() < n; ++t) // fewer numbers than asked for: of the others the first
        if (!(logits[t] > -INFINITY)) top.push_back({static_cast<int32_t>(t), -INFINITY});
    for (size_t k = 0; k < n; ++k) {
        batch.raw.top_tokens[size_t{i} * batch.raw.max_logprobs + k] = top[k].token;
        batch.raw.top_logprobs[size_t{i} * batch.raw.max_logprobs + k] = logprob(top[k].token);
    }
}

}  // namespace patchbay
