// patchbay/sdk/dry.hpp - for samplers: DRY ("don't repeat yourself", by p-e-w), a penalty for tokens that would go on
// with what prompt and output have had before, the larger the longer it is. Works on logits before the temperature.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>
#include <vector>

#include "patchbay/abi/sampler.h"

namespace patchbay {

// By position in `x`: how many tokens up to and with it are those that x ends with, counted up to the first breaker.
// Linear in x (the Z algorithm, from the end).
inline std::vector<uint32_t> repeats_of_end(std::span<const int32_t> x, std::span<const int32_t> breakers) {
    const size_t n = x.size();
    size_t max_length = 0; // after the last breaker
    while (max_length < n && !std::binary_search(breakers.begin(), breakers.end(), x[n - 1 - max_length]))
        max_length += 1;
    std::vector<uint32_t> z(n, 0); // from the end
    for (size_t i = 1, left = 0, right = 0; i < n; ++i) {
        size_t length = i < right ? std::min<size_t>(right - i, z[i - left]) : 0;
        while (i + length < n && x[n - 1 - length] == x[n - 1 - i - length]) length += 1;
        z[i] = static_cast<uint32_t>(length);
        if (i + length > right) left = i, right = i + length;
    }
    for (uint32_t& length : z) length = static_cast<uint32_t>(std::min<size_t>(length, max_length));
    std::reverse(z.begin(), z.end());
    return z;
}

inline void penalise_repetitions(std::span<float> logits, const pb_sample_row& row) {
    const pb_sampling_params& p = *row.params;
    std::vector<int32_t> history(row.prompt, row.prompt + row.prompt_count);
    history.insert(history.end(), row.output, row.output + row.output_count);
    std::span<const int32_t> seen(history);
    if (p.dry_range > 0 && p.dry_range < seen.size()) seen = seen.last(p.dry_range);
    const std::span<const int32_t> breakers(p.dry_breakers, p.dry_breaker_count);
    const auto repeats = repeats_of_end(seen, breakers);
    std::unordered_map<int32_t, uint32_t> longest; // repetition that a token would go on with
    for (size_t i = 0; i + 1 < seen.size(); ++i)
        if (repeats[i] > 0 && repeats[i] >= p.dry_allowed_length &&
            !std::binary_search(breakers.begin(), breakers.end(), seen[i + 1])) {
            uint32_t& so_far = longest[seen[i + 1]];
            so_far = std::max(so_far, repeats[i]);
        }
    for (const auto& [token, length] : longest) {
        const double penalty = p.dry_multiplier * std::pow(static_cast<double>(p.dry_base),
                                                           static_cast<double>(length - p.dry_allowed_length));
        logits[static_cast<size_t>(token)] -= static_cast<float>(std::min(penalty, 1e30)); // finite
    }
}

}  // namespace patchbay
