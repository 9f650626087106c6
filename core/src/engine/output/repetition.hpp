// repetition_detection: whether an output has begun to repeat itself.
#pragma once
#include <algorithm>
#include <span>

#include "engine/request/request.hpp"

namespace patchbay::engine {

// Whether it ends in `min_count` copies of a pattern of min_pattern_size (0 counts as 1) to max_pattern_size
// tokens. Costs at most the square of max_pattern_size, and mostly one comparison a size.
inline bool repeats(std::span<const TokenId> output, const RepetitionDetection& p) {
    for (size_t size = std::max(p.min_pattern_size, 1u); size <= p.max_pattern_size; ++size) {
        if (size * p.min_count > output.size()) return false;
        const auto end = output.last(size * p.min_count);
        size_t same = 0; // from the end on: tokens that stand there one pattern earlier too
        while (same < end.size() - size && end[end.size() - 1 - same] == end[end.size() - 1 - same - size]) ++same;
        if (same == end.size() - size) return true;
    }
    return false;
}

}  // namespace patchbay::engine
