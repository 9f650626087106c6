#include "experiment/results_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace patchbay::experiment {
namespace {

constexpr size_t kWidth = 110; // variants that do not fit beside the baseline go into a table below
constexpr size_t kLabel = 19, kUnit = 7;

struct Cell {
    std::string value, change; // change: from the baseline
    Verdict verdict = Verdict::kNone;
};

struct Column {
    std::vector<std::string> head; // lines
    std::vector<Cell> cells;       // one a metric
    size_t value = 0, change = 0, verdict = 0; // widths
    size_t width() const { return value + (change ? 1 + change : 0) + (verdict ? 1 + verdict : 0); }
};

size_t columns_of(const std::string& text) { // of UTF-8
    return static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

std::string gap(const std::string& text, size_t width) {
    return std::string(width - std::min(width, columns_of(text)), ' ');
}
std::string right(const std::string& text, size_t width) { return gap(text, width) + text; }
std::string left(const std::string& text, size_t width) { return text + gap(text, width); }

std::string sign_of(Verdict v) {
    switch (v) {
        case Verdict::kBetter: return "better";
        case Verdict::kWorse: return "worse";
        case Verdict::kDifferent: return "differs";
        case Verdict::kNoDifference: return "=";
        case Verdict::kTooFewRepeats: return "?";
        default: return "";
    }
}

// "+12.3 %" of the baseline, or the plain difference where the baseline is 0 or the unit is a share.
std::string change_text(double difference, double baseline, const std::string& unit) {
    if (std::isnan(difference)) return "";
    const bool relative = unit != "%" && baseline != 0;
    const double value = relative ? 100 * difference / baseline : difference, size = std::abs(value);
    if (size < 0.005) return "0";
    const std::string suffix = relative ? " %" : unit == "%" ? " pp" : "";
    if (size >= 99.95) return (value > 0 ? "+" : "") + shown(value) + suffix;
    char text[32];
    std::snprintf(text, sizeof text, "%+.*f", size >= 0.95 ? 1 : 2, value);
    return text + suffix;
}

Cell cell_of(const VariantResult& r, const VariantResult& base, size_t m) {
    Cell c{shown(r.metrics[m]), "", Verdict::kBaseline};
    if (r.comparison.metrics.empty()) return c;
    const Difference& d = r.comparison.metrics[m];
    c.change = change_text(d.value, base.metrics[m], metric_infos()[m].unit);
    c.verdict = d.verdict;
    return c;
}

// Names of combinations of factors are long: a factor a line.
Column column_of(const Conclusion& c, const std::string& name, size_t variant, size_t baseline) {
    Column column;
    for (size_t at = 0, end; at < name.size(); at = end + 1) {
        end = std::min(name.find(' ', at), name.size());
        column.head.push_back(name.substr(at, end - at));
    }
    if (variant == baseline) column.head.push_back("baseline");
    for (size_t m = 0; m < metric_infos().size(); ++m) {
        Cell cell = cell_of(c.results[variant], c.results[baseline], m);
        column.value = std::max(column.value, columns_of(cell.value));
        column.change = std::max(column.change, columns_of(cell.change));
        column.verdict = std::max(column.verdict, columns_of(sign_of(cell.verdict)));
        column.cells.push_back(std::move(cell));
    }
    size_t widest = 0;
    for (const std::string& line : column.head) widest = std::max(widest, columns_of(line));
    if (widest > column.width()) column.value += widest - column.width();
    return column;
}

std::string painted(const std::string& text, Verdict v, Colour colour) {
    if (colour == Colour::kOff || (v != Verdict::kBetter && v != Verdict::kWorse)) return text;
    return (v == Verdict::kBetter ? "\033[32m" : "\033[31m") + text + "\033[0m";
}

void end_line(std::string& out) {
    while (out.ends_with(' ')) out.pop_back();
    out += '\n';
}

void append_block(std::string& out, const Conclusion& c, const std::vector<const Column*>& columns, Colour colour) {
    size_t head = 0;
    for (const Column* column : columns) head = std::max(head, column->head.size());
    for (size_t line = 0; line < head; ++line) {
        out += std::string(kLabel + kUnit, ' ');
        for (const Column* column : columns) {
            const std::string word = line < column->head.size() ? column->head[line] : "";
            out += "  " + left(right(word, column->value), column->width());
        }
        end_line(out);
    }
    const auto& infos = metric_infos();
    for (size_t m = 0; m < infos.size(); ++m) {
        const auto has_none = [&](const VariantResult& r) { return std::isnan(r.metrics[m]); };
        if (std::all_of(c.results.begin(), c.results.end(), has_none)) continue;
        out += left(infos[m].label, kLabel) + left(infos[m].unit, kUnit);
        for (const Column* column : columns) {
            const Cell& cell = column->cells[m];
            std::string text = right(cell.value, column->value);
            if (column->change) text += " " + right(cell.change, column->change);
            if (column->verdict) text += " " + left(sign_of(cell.verdict), column->verdict);
            out += "  " + painted(text, cell.verdict, colour);
        }
        end_line(out);
    }
}

std::string legend_of(const std::vector<Column>& columns, const std::string& baseline) {
    const auto has = [&](Verdict v) {
        return std::any_of(columns.begin(), columns.end(), [&](const Column& column) {
            return std::any_of(column.cells.begin(), column.cells.end(), [&](const Cell& c) { return c.verdict == v; });
        });
    };
    std::string out = "beside a value: how it differs from " + baseline;
    if (has(Verdict::kBetter) || has(Verdict::kWorse) || has(Verdict::kDifferent) || has(Verdict::kNoDifference))
        out += "; = no difference shown: its 95 % interval contains 0";
    if (has(Verdict::kTooFewRepeats))
        out += "\n? no verdict: fewer than " + std::to_string(kRepeatsForVerdict) + " valid repeats";
    return out + "\n";
}

}  // namespace

std::string wrapped(const std::string& text, size_t columns) {
    std::string out;
    size_t line = 0; // columns of the last line
    for (size_t at = 0, end; at <= text.size(); at = end + 1) {
        end = std::min(text.find(' ', at), text.size());
        const std::string word = text.substr(at, end - at);
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
    std::vector<Column> columns;
    for (size_t v = 0; v < variants.size(); ++v) columns.push_back(column_of(c, variants[v], v, baseline));
    std::string out;
    std::vector<const Column*> block{&columns[baseline]};
    const size_t narrowest = kLabel + kUnit + 2 + columns[baseline].width();
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
