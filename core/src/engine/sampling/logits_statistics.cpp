#include "engine/sampling/logits_statistics.hpp"

#include <algorithm>
#include <cmath>

namespace patchbay::engine {

LogitsStatistics statistics_of(std::span<const float> logits) {
    double highest = -INFINITY;
    for (const float x : logits) highest = std::max(highest, x > highest ? double{x} : highest);
    if (!std::isfinite(highest)) return {};
    double sum = 0, weighted = 0; // of e^(x − highest), and times x − highest
    for (const float x : logits) {
        const double below = x - highest;
        if (!(below > -700)) continue;
        const double weight = std::exp(below);
        sum += weight;
        weighted += weight * below;
    }
    return {std::log(sum) - weighted / sum, highest, 1 / sum};
}

}  // namespace patchbay::engine
