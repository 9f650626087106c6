// Medians and percentiles of what a bench has timed, and lines of its tables.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace patchbay::bench {

// The quantile at `share`, between two values by interpolation (rank share · (n − 1)); 0.5: the median. Of none 0.
inline double at_share(std::vector<double> values, double share) {
    if (values.empty()) return 0;
    const double rank = share * static_cast<double>(values.size() - 1);
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(values.begin(), at, values.end());
    if (at + 1 == values.end()) return *at;
    return std::lerp(*at, *std::min_element(at + 1, values.end()), rank - std::floor(rank));
}

// As printf; a line of at most 255 bytes.
__attribute__((format(printf, 1, 2))) inline std::string printed(const char* format, ...) {
    char line[256];
    va_list values;
    va_start(values, format);
    std::vsnprintf(line, sizeof line, format, values);
    va_end(values);
    return line;
}

}  // namespace patchbay::bench
