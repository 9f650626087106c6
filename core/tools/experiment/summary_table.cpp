#include "experiment/summary_table.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "experiment/table_text.hpp"

namespace patchbay::experiment {
namespace {

constexpr size_t kWidth = 120, kMaxName = 36;
constexpr double kNoise = 1000;     // %: what only larger differences would show through
constexpr double kNoisePoints = 100; // the same of shares, which cannot differ by more

// "key=value" words, the same keys at the same places in all names; else empty.
std::vector<std::string> keys_of(const std::vector<std::vector<std::string>>& names) {
    std::vector<std::string> keys;
    for (const std::string& word : names.front()) keys.push_back(word.substr(0, word.find('=')));
    for (const auto& words : names) {
        if (words.size() != keys.size()) return {};
        for (size_t i = 0; i < words.size(); ++i)
            if (words[i].find('=') == words[i].npos || words[i].substr(0, words[i].find('=')) != keys[i]) return {};
    }
    return keys;
}

// In the middle, where names of one experiment are most alike.
std::string fitted(const std::string& name) {
    if (columns_of(name) <= kMaxName || columns_of(name) != name.size()) return name;
    return name.substr(0, kMaxName / 2 - 1) + "…" + name.substr(name.size() - kMaxName / 2);
}

std::string joined_words(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& w : words) out += (out.empty() ? "" : " ") + w;
    return out;
}

bool is_noise(const Shift& shift, const Difference& d, const std::string& unit) {
    const double size = std::abs(shift.of(d.detectable));
    return shift.relative ? size > kNoise : unit == "%" && size > kNoisePoints;
}

TableCell cell_of(const VariantResult& r, const VariantResult& base, size_t m, const std::string& unit) {
    TableCell c{value_text(r, m), "", Verdict::kBaseline};
    if (r.comparison.metrics.empty()) return c;
    const Difference& d = r.comparison.metrics[m];
    c.verdict = d.verdict;
    const Shift shift(base.metrics[m], unit);
    const std::string change = std::isnan(d.value) ? "" : bound_sign(d.verdict) + shift.number(d.value) + shift.suffix;
    switch (d.verdict) {
        case Verdict::kBetter: c.change = change + " ▲"; break;
        case Verdict::kWorse: c.change = change + " ▼"; break;
        case Verdict::kDifferent: c.change = change + " ◆"; break;
        case Verdict::kNoDifference:
            if (is_same(d)) c.change = "= same";
            else if (std::isnan(d.detectable)) c.change = change + " =";
            else if (is_noise(shift, d, unit)) c.change = "= noise";
            else c.change = "= ≥" + shift.size(d.detectable);
            break;
        case Verdict::kTooFewRepeats: c.change = change + " ?"; break;
        default: c.change = change;
    }
    return c;
}

TableColumn column_of(const Conclusion& c, size_t metric, size_t baseline) {
    const MetricInfo& info = c.list[metric];
    TableColumn column{info.label, info.unit};
    for (const VariantResult& r : c.results) column.add(cell_of(r, c.results[baseline], metric, info.unit));
    return column;
}

void append_block(std::string& out, const std::vector<const TableColumn*>& columns, const ShortNames& names,
                  size_t widest, const std::vector<size_t>& order, size_t baseline, Colour colour) {
    const auto line = [&](const std::string& name, auto&& text_of) {
        std::string text = left(name, widest);
        for (const TableColumn* c : columns) text += "  " + text_of(*c);
        out += trimmed(text) + '\n';
    };
    line(names.head, [](const TableColumn& c) { return left(c.label, c.width()); });
    line("", [](const TableColumn& c) { return left(c.unit, c.width()); });
    for (const size_t v : order)
        line(names.names[v] + (v == baseline ? " *" : ""),
             [&](const TableColumn& c) { return painted(c.text(v), c.cells[v].verdict, colour); });
}

std::string legend_of(const std::vector<TableColumn>& columns, const std::string& baseline) {
    std::set<Verdict> seen;
    for (const TableColumn& column : columns)
        for (const TableCell& cell : column.cells) seen.insert(cell.verdict);
    std::string name; // its parts stand in columns
    for (const std::string& word : words_of(baseline)) name += word.empty() ? "" : (name.empty() ? "" : " ") + word;
    std::string out = "* " + name + " is the baseline";
    const auto add = [&](Verdict v, const std::string& text) { out += seen.contains(v) ? "; " + text : ""; };
    add(Verdict::kBetter, "▲ better");
    add(Verdict::kWorse, "▼ worse");
    add(Verdict::kDifferent, "◆ different");
    add(Verdict::kNoDifference, "= no difference shown; ≥ smallest detectable difference (90 % power)");
    const auto has = [&](const char* change) {
        return std::ranges::any_of(columns, [&](const TableColumn& c) {
            return std::ranges::find(c.cells, change, &TableCell::change) != c.cells.end();
        });
    };
    if (has("= same")) out += "; same: equal in every repeat";
    if (has("= noise")) out += "; noise: only one above 1,000 %, or 100 pp for shares, would have been found";
    const auto is_bound = [](const TableCell& cell) { return cell.value.starts_with("≥"); };
    if (std::ranges::any_of(columns, [&](const TableColumn& c) { return std::ranges::any_of(c.cells, is_bound); }))
        out += "; ≥, ≤ before a number: at least, at most, and not judged";
    add(Verdict::kTooFewRepeats,
        "? no verdict: fewer than " + std::to_string(kRepeatsForVerdict) + " independent repeats are valid");
    return wrapped(out, kWidth) + '\n';
}

}  // namespace

ShortNames shortened(const std::vector<std::string>& names) {
    ShortNames out{"", "", names};
    std::vector<std::vector<std::string>> words;
    for (const std::string& name : names) words.push_back(words_of(name));
    const std::vector<std::string> keys = names.size() > 1 ? keys_of(words) : std::vector<std::string>();
    if (!keys.empty()) {
        out.names.assign(names.size(), "");
        std::vector<std::string> common, head;
        for (size_t i = 0; i < keys.size(); ++i) {
            const bool same = std::ranges::all_of(words, [&](const auto& w) { return w[i] == words[0][i]; });
            if (same) {
                common.push_back(words[0][i]);
                continue;
            }
            head.push_back(keys[i]);
            size_t widest = keys[i].size();
            for (const auto& w : words) widest = std::max(widest, columns_of(w[i]) - keys[i].size() - 1);
            if (head.size() > 1) out.head += " ";
            out.head += left(keys[i], widest);
            for (size_t v = 0; v < names.size(); ++v)
                out.names[v] += (head.size() > 1 ? " " : "") + left(words[v][i].substr(keys[i].size() + 1), widest);
        }
        out.common = joined_words(common);
    }
    out.head = trimmed(out.head);
    for (std::string& name : out.names) name = trimmed(name);
    std::vector<std::string> fit;
    for (const std::string& name : out.names) fit.push_back(out.head.empty() ? fitted(name) : name);
    if (std::set(fit.begin(), fit.end()).size() == std::set(names.begin(), names.end()).size()) out.names = fit;
    if (std::set(out.names.begin(), out.names.end()).size() < std::set(names.begin(), names.end()).size())
        return {"", "", names};
    return out;
}

std::string summary_table(const Conclusion& c, const std::vector<std::string>& variants, size_t baseline,
                          Colour colour) {
    const ShortNames names = shortened(variants);
    size_t widest = columns_of(names.head);
    for (const std::string& name : names.names) widest = std::max(widest, columns_of(name) + 2);
    const std::vector<size_t> order = baseline_first(variants.size(), baseline);
    std::vector<TableColumn> columns;
    for (const size_t m : c.primary) {
        const auto has = [&](const VariantResult& r) { return !std::isnan(r.metrics[m]); };
        if (std::any_of(c.results.begin(), c.results.end(), has)) columns.push_back(column_of(c, m, baseline));
    }
    std::string out;
    if (!names.common.empty()) out += "all with " + names.common + '\n';
    std::vector<const TableColumn*> block;
    size_t width = widest;
    const auto flush = [&] {
        if (block.empty()) return;
        append_block(out, block, names, widest, order, baseline, colour);
        out += '\n';
        block.clear();
        width = widest;
    };
    for (const TableColumn& column : columns) { // what does not fit goes below
        if (!block.empty() && width + 2 + column.width() > kWidth) flush();
        block.push_back(&column);
        width += 2 + column.width();
    }
    flush();
    if (!out.empty()) out.pop_back(); // the last empty line
    if (variants.size() > 1) out += legend_of(columns, names.names[baseline]);
    return out;
}

}  // namespace patchbay::experiment
