#include "experiment/results_table.hpp"

#include <algorithm>
#include <cmath>

namespace patchbay::experiment {
namespace {

constexpr size_t kColumnsAtOnce = 4; // variants side by side

struct Cell {
    std::string text, mark; // mark: the verdict's sign behind the text
    Verdict verdict = Verdict::kNone;
};

size_t columns_of(const std::string& text) { // of UTF-8
    return static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, size_t width) {
    return std::string(width - std::min(width, columns_of(text)), ' ') + text;
}

std::string sign_of(Verdict v) {
    switch (v) {
        case Verdict::kBetter: return "+";
        case Verdict::kWorse: return "-";
        case Verdict::kDifferent: return "*";
        case Verdict::kNoDifference: return "=";
        case Verdict::kTooFewRepeats: return "?";
        default: return " ";
    }
}

// "+12 %" of the baseline, or the plain difference where the baseline is 0 or the unit is a share.
std::string difference_text(double difference, double baseline, const std::string& unit) {
    if (std::isnan(difference)) return "";
    const bool relative = unit != "%" && baseline != 0;
    const double value = relative ? 100 * difference / baseline : difference;
    std::string text = (value > 0 ? "+" : "") + (std::abs(value) < 0.05 ? std::string("0") : shown(value));
    return text + (relative ? " %" : unit == "%" ? " pp" : "");
}

Cell cell_of(const VariantResult& r, const VariantResult& base, size_t m) {
    Cell c{shown(r.metrics[m]), " ", Verdict::kBaseline};
    if (r.comparison.metrics.empty()) return c;
    const Difference& d = r.comparison.metrics[m];
    const std::string difference = difference_text(d.value, base.metrics[m], metric_infos()[m].unit);
    if (!difference.empty()) c.text += "  " + padded(difference, 8);
    c.verdict = d.verdict;
    c.mark = sign_of(d.verdict);
    return c;
}

std::string painted(const std::string& text, Verdict v, Colour colour) {
    if (colour == Colour::kOff || (v != Verdict::kBetter && v != Verdict::kWorse)) return text;
    return (v == Verdict::kBetter ? "\033[32m" : "\033[31m") + text + "\033[0m";
}

void append_block(std::string& out, const Conclusion& c, const std::vector<std::string>& names, size_t baseline,
                  const std::vector<size_t>& variants, Colour colour) {
    const auto& infos = metric_infos();
    std::vector<std::vector<Cell>> rows(infos.size());
    std::vector<size_t> widths;
    for (const size_t v : variants) widths.push_back(columns_of(names[v]) + (v == baseline ? 11 : 0));
    for (size_t m = 0; m < infos.size(); ++m)
        for (size_t i = 0; i < variants.size(); ++i) {
            rows[m].push_back(cell_of(c.results[variants[i]], c.results[baseline], m));
            widths[i] = std::max(widths[i], columns_of(rows[m].back().text) + 2);
        }
    constexpr size_t kLabel = 20, kUnit = 8;
    out += std::string(kLabel + kUnit, ' ');
    for (size_t i = 0; i < variants.size(); ++i)
        out += "  " + padded(names[variants[i]] + (variants[i] == baseline ? " (baseline)" : ""), widths[i]);
    out += '\n';
    for (size_t m = 0; m < infos.size(); ++m) {
        if (std::all_of(c.results.begin(), c.results.end(),
                        [&](const VariantResult& r) { return std::isnan(r.metrics[m]); }))
            continue;
        std::string label = infos[m].label, unit = infos[m].unit;
        label.resize(kLabel, ' ');
        unit.resize(kUnit, ' ');
        out += label + unit;
        for (size_t i = 0; i < variants.size(); ++i) {
            const Cell& cell = rows[m][i];
            out += "  " + painted(padded(cell.text, widths[i] - 2) + " " + cell.mark, cell.verdict, colour);
        }
        while (out.ends_with(' ')) out.pop_back();
        out += '\n';
    }
}

}  // namespace

std::string results_table(const Conclusion& c, const std::vector<std::string>& variants, size_t baseline,
                          Colour colour) {
    std::string out;
    std::vector<size_t> others;
    for (size_t v = 0; v < variants.size(); ++v)
        if (v != baseline) others.push_back(v);
    for (size_t first = 0; first == 0 || first < others.size(); first += kColumnsAtOnce - 1) {
        std::vector<size_t> block{baseline};
        for (size_t i = first; i < std::min(others.size(), first + kColumnsAtOnce - 1); ++i) block.push_back(others[i]);
        if (first > 0) out += '\n';
        append_block(out, c, variants, baseline, block, colour);
    }
    if (!others.empty())
        out +=
            "differences from the baseline: + better, - worse, = no difference shown (95 % interval contains 0), ? too "
            "few repeats, * different\n";
    return out;
}

}  // namespace patchbay::experiment
