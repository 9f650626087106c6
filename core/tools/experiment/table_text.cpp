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

std::vector<std::string> words_of(const std::string& text) {
    std::vector<std::string> out;
    for (size_t at = 0, end; at <= text.size(); at = end + 1) {
        end = std::min(text.find(' ', at), text.size());
        out.push_back(text.substr(at, end - at));
    }
    return out;
}

std::string trimmed(std::string line) {
    line.resize(line.find_last_not_of(' ') + 1);
    return line;
}

std::vector<size_t> baseline_first(size_t variants, size_t baseline) {
    std::vector<size_t> order{baseline};
    for (size_t v = 0; v < variants; ++v)
        if (v != baseline) order.push_back(v);
    return order;
}

void TableColumn::add(TableCell cell) {
    value = std::max(value, columns_of(cell.value));
    change = std::max(change, columns_of(cell.change));
    cells.push_back(std::move(cell));
}

size_t TableColumn::width() const {
    return std::max({value + (change ? 1 + change : 0), columns_of(label), columns_of(unit)});
}

std::string TableColumn::text(size_t cell) const {
    return left(right(cells[cell].value, value) + (change ? " " + left(cells[cell].change, change) : ""), width());
}

std::string value_text(const VariantResult& r, size_t metric) {
    return (r.bounds.contains(metric) ? "≥" : "") + shown(r.metrics[metric]);
}

std::string bound_sign(Verdict v) { return v == Verdict::kAtLeast ? "≥" : v == Verdict::kAtMost ? "≤" : ""; }

Shift::Shift(double base, const std::string& unit) : relative(unit != "%" && base != 0), baseline(std::abs(base)) {
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
