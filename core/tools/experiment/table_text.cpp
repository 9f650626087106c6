#include "experiment/table_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/utf8.hpp"
#include "experiment/conclusion.hpp"

namespace patchbay::experiment {
namespace {

std::string gap(const std::string& text, size_t width) {
    return std::string(width - std::min(width, columns_of(text)), ' ');
}
}  // namespace

size_t columns_of(const std::string& text) { return count_characters(text); }

std::string right(const std::string& text, size_t width) { return gap(text, width) + text; }
std::string left(const std::string& text, size_t width) { return text + gap(text, width); }

std::string painted(const std::string& text, Verdict v, Colour colour) {
    if (colour == Colour::kOff || (v != Verdict::kBetter && v != Verdict::kWorse)) return text;
    return (v == Verdict::kBetter ? "\033[32m" : "\033[31m") + text + "\033[0m";
}

Shift::Shift(double base, const std::string& unit) : relative(unit != "%" && base != 0), baseline(base) {
    suffix = relative ? " %" : unit == "%" ? " pp" : "";
}

std::string Shift::size(double difference) const {
    constexpr double kSmallest = 0.01; // not 0: smaller ones round up to it
    const double size = std::abs(difference), least = relative ? kSmallest / 100 * baseline : kSmallest;
    const std::string text = std::isnan(difference) ? "–" : number(size > 0 ? std::max(size, least) : 0);
    return (text.starts_with('+') ? text.substr(1) : text) + suffix;
}

std::string Shift::number(double difference) const {
    const double value = of(difference), absolute = std::abs(value);
    if (absolute < 0.005) return "0";
    if (absolute >= 99.95) return (value > 0 ? "+" : "") + shown(value);
    char text[32];
    std::snprintf(text, sizeof text, "%+.*f", absolute >= 0.95 ? 1 : 2, value);
    return text;
}

}  // namespace patchbay::experiment
