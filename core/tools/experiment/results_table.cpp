#include "experiment/results_table.hpp"

#include <algorithm>
#include <cmath>

#include "experiment/table_text.hpp"

namespace patchbay::experiment {
namespace {

constexpr size_t kWidth = 110; // variants that do not fit beside the baseline go into a table below
constexpr size_t kUnit = 8; // with a space

struct Cell {
    std::string value, change, note; // change: from the baseline; note: the verdict, or an interval
    Verdict verdict = Verdict::kNone;
};

struct ResultColumn {
    std::vector<std::string> head; // lines
    std::vector<Cell> cells;       // one a metric
    size_t value = 0, change = 0, note = 0; // widths
    size_t width() const { return value + (change ? 1 + change : 0) + (note ? 1 + note : 0); }
};

std::string note_of(const Difference& d, const Shift& shift, uint32_t independent) {
    switch (d.verdict) {
        case Verdict::kBetter: return "better";
        case Verdict::kWorse: return "worse";
        case Verdict::kDifferent: return "differs";
        case Verdict::kNoDifference:
            if (is_same(d)) return "= same";
            return std::isnan(d.detectable) ? "=" : "= ≥" + shift.size(d.detectable);
        case Verdict::kTooFewRepeats: return "?";
        case Verdict::kExploratory:
            // Of two or three repeats an interval is wide beyond any use.
            if (std::isnan(d.low) || independent < kRepeatsForVerdict) return "";
            return "(" + shift.number(d.low) + " … " + shift.number(d.high) + ")";
        default: return "";
    }
}

Cell cell_of(const VariantResult& r, const VariantResult& base, size_t m, const std::string& unit) {
    Cell c{value_text(r, m), "", "", Verdict::kBaseline};
    if (r.comparison.metrics.empty()) return c;
    const Difference& d = r.comparison.metrics[m];
    const Shift shift(base.metrics[m], unit);
    if (!std::isnan(d.value)) c.change = bound_sign(d.verdict) + shift.number(d.value);
    if (!c.change.empty() && c.change != "0") c.change += shift.suffix;
    c.note = note_of(d, shift, r.comparison.independent);
    c.verdict = d.verdict;
    return c;
}

// Names of combinations of factors are long: a factor a line.
ResultColumn column_of(const Conclusion& c, const std::string& name, size_t variant, size_t baseline) {
    ResultColumn column{.head = words_of(trimmed(name))};
    if (variant == baseline) column.head.push_back("baseline");
    for (size_t m = 0; m < c.list.size(); ++m) {
        Cell cell = cell_of(c.results[variant], c.results[baseline], m, c.list[m].unit);
        column.value = std::max(column.value, columns_of(cell.value));
        column.change = std::max(column.change, columns_of(cell.change));
        column.note = std::max(column.note, columns_of(cell.note));
        column.cells.push_back(std::move(cell));
    }
    size_t widest = 0;
    for (const std::string& line : column.head) widest = std::max(widest, columns_of(line));
    if (widest > column.width()) column.value += widest - column.width();
    return column;
}

bool has_value(const Conclusion& c, size_t metric) {
    return std::ranges::any_of(c.results, [&](const VariantResult& r) { return !std::isnan(r.metrics[metric]); });
}

size_t label_width(const Conclusion& c) { // with a space
    size_t out = 0;
    for (size_t m = 0; m < c.list.size(); ++m)
        if (has_value(c, m)) out = std::max(out, columns_of(c.list[m].label) + 1);
    return out;
}

void end_line(std::string& out) { out = trimmed(std::move(out)) + '\n'; }

void append_rows(std::string& out, const Conclusion& c, const std::vector<size_t>& metrics,
                 const std::vector<const ResultColumn*>& columns, Colour colour) {
    const size_t label = label_width(c);
    for (const size_t m : metrics) {
        if (!has_value(c, m)) continue;
        out += left(c.list[m].label, label) + left(c.list[m].unit, kUnit);
        for (const ResultColumn* column : columns) {
            const Cell& cell = column->cells[m];
            std::string text = right(cell.value, column->value);
            if (column->change) text += " " + right(cell.change, column->change);
            if (column->note) text += " " + left(cell.note, column->note);
            out += "  " + painted(text, cell.verdict, colour);
        }
        end_line(out);
    }
}

void append_block(std::string& out, const Conclusion& c, const std::vector<const ResultColumn*>& columns,
                  Colour colour) {
    size_t head = 0;
    for (const ResultColumn* column : columns) head = std::max(head, column->head.size());
    for (size_t line = 0; line < head; ++line) {
        out += std::string(label_width(c) + kUnit, ' ');
        for (const ResultColumn* column : columns) {
            const std::string word = line < column->head.size() ? column->head[line] : "";
            out += "  " + left(right(word, column->value), column->width());
        }
        end_line(out);
    }
    std::vector<size_t> rest;
    for (size_t m = 0; m < c.list.size(); ++m)
        if (std::find(c.primary.begin(), c.primary.end(), m) == c.primary.end()) rest.push_back(m);
    if (columns.size() > 1) out += "primary metrics\n";
    append_rows(out, c, c.primary, columns, colour);
    if (columns.size() > 1) out += "exploratory: intervals, no verdicts\n";
    append_rows(out, c, rest, columns, colour);
}

std::string legend_of(const std::vector<ResultColumn>& columns, const std::string& baseline) {
    const auto has = [&](Verdict v) {
        return std::any_of(columns.begin(), columns.end(), [&](const ResultColumn& column) {
            return std::any_of(column.cells.begin(), column.cells.end(), [&](const Cell& c) { return c.verdict == v; });
        });
    };
    std::string out = "beside a value: how it differs from " + baseline + "; in brackets: 95 % interval\n";
    if (has(Verdict::kBetter) || has(Verdict::kWorse) || has(Verdict::kDifferent) || has(Verdict::kNoDifference))
        out += "verdicts are corrected for their number: of 20 such tables of equal variants one has a false one\n";
    if (has(Verdict::kNoDifference))
        out += "= no difference shown; ≥ smallest detectable difference (90 % power)\n";
    if (has(Verdict::kTooFewRepeats))
        out += "? no verdict: fewer than " + std::to_string(kRepeatsForVerdict) + " independent repeats are valid\n";
    const auto is_bound = [](const Cell& c) { return c.value.starts_with("≥"); };
    if (std::ranges::any_of(columns, [&](const ResultColumn& k) { return std::ranges::any_of(k.cells, is_bound); }))
        out += "≥, ≤ before a value or a difference: at least, at most; what is a bound is not judged\n";
    return out;
}

}  // namespace

std::string wrapped(const std::string& text, size_t columns) {
    std::string out;
    size_t line = 0; // columns of the last line
    for (const std::string& word : words_of(text)) {
        const size_t width = columns_of(word);
        const bool fits = line + 1 + width <= columns;
        if (!out.empty()) out += fits ? ' ' : '\n';
        line = out.empty() ? width : fits ? line + 1 + width : width;
        out += word;
    }
    return out;
}

std::string results_table(const Conclusion& c, const std::vector<std::string>& variants, size_t baseline,
                          Colour colour) {
    std::vector<ResultColumn> columns;
    for (size_t v = 0; v < variants.size(); ++v) columns.push_back(column_of(c, variants[v], v, baseline));
    std::string out;
    std::vector<const ResultColumn*> block{&columns[baseline]};
    const size_t narrowest = label_width(c) + kUnit + 2 + columns[baseline].width();
    size_t width = narrowest;
    const auto flush = [&] {
        if (!out.empty()) out += '\n';
        append_block(out, c, block, colour);
        block.resize(1);
        width = narrowest;
    };
    for (size_t v = 0; v < variants.size(); ++v) {
        if (v == baseline) continue;
        if (block.size() > 1 && width + 2 + columns[v].width() > kWidth) flush();
        block.push_back(&columns[v]);
        width += 2 + columns[v].width();
    }
    flush();
    if (variants.size() > 1) out += legend_of(columns, variants[baseline]);
    return out;
}

}  // namespace patchbay::experiment
