// Medians and percentiles of what a bench has timed.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace patchbay::bench {

// The value below which `share` of them lie; 0 of none.
inline double at_share(std::vector<double> values, double share) {
    if (values.empty()) return 0;
    const size_t at = std::min(values.size() - 1, static_cast<size_t>(share * static_cast<double>(values.size())));
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
    return values[at];
}

}  // namespace patchbay::bench
