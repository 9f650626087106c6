#include "top/quantity.hpp"

#include <fmt/format.h>

#include <cmath>

namespace patchbay::top {

std::string seconds_text(double seconds) {
    if (!std::isfinite(seconds)) return "-";
    if (seconds == 0) return "0 s";
    if (seconds < 0.9995e-3) return fmt::format("{:.{}f} us", seconds * 1e6, seconds < 10e-6 ? 1 : 0);
    if (seconds < 0.9995) return fmt::format("{:.{}f} ms", seconds * 1e3, seconds < 0.09995 ? 1 : 0);
    return fmt::format("{:.{}f} s", seconds, seconds < 99.5 ? 2 : 0);
}

std::string last_text(double seconds) { return fmt::format("last {:.{}f} s", seconds, seconds < 0.95 ? 1 : 0); }

std::string share_text(double share) {
    if (!std::isfinite(share)) return "-";
    if (share > 0 && share < 0.0005) return "<0.1 %";
    return fmt::format("{:.{}f} %", 100 * share, share > 0 && share < 0.0995 ? 1 : 0);
}

std::string count_text(double count) {
    if (!std::isfinite(count)) return "-";
    const double size = std::abs(count);
    if (size >= 0.9995e6) return fmt::format("{:.1f} M", count / 1e6);
    if (size >= 9'999.5) return fmt::format("{:.1f} k", count / 1e3);
    return fmt::format("{:.{}f}", count, size >= 99.5 || count == std::floor(count) ? 0 : 1);
}

std::string rate_text(double a_second) { return std::isfinite(a_second) ? count_text(a_second) + "/s" : "-"; }

}  // namespace patchbay::top
