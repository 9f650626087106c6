#include "experiment/class_table.hpp"

#include <algorithm>
#include <cmath>

#include "experiment/summary_table.hpp"
#include "experiment/table_text.hpp"

namespace patchbay::experiment {
namespace {

constexpr size_t kWidth = 120, kMaxRows = 24; // rows: on a screen

TableCell cell_of(const VariantResult& r, const VariantResult& base, size_t m, const std::string& unit,
             Intervals intervals) {
    TableCell c{shown(r.metrics[m]), ""};
    if (r.comparison.metrics.empty()) return c;
    const Difference& d = r.comparison.metrics[m];
    if (std::isnan(d.value)) return c;
    const Shift shift(base.metrics[m], unit);
    c.change = shift.number(d.value) + (d.value == 0 ? "" : shift.suffix);
    if (intervals == Intervals::kShown && !std::isnan(d.low) && r.comparison.independent >= kRepeatsForVerdict)
        c.change += " (" + shift.number(d.low) + " … " + shift.number(d.high) + ")";
    return c;
}

struct ClassTable {
    std::vector<std::string> heads; // of lines: class, variant
    std::vector<TableColumn> columns;
    size_t head = 0;

    std::string text(const std::string& title) const {
        std::string out;
        const auto line = [&](const std::string& name, size_t from, size_t to, auto&& text_of) {
            std::string text = left(name, head);
            for (size_t c = from; c < to; ++c) text += "  " + text_of(columns[c]);
            out += trimmed(text) + '\n';
        };
        for (size_t from = 0, to; from < columns.size(); from = to) { // what does not fit goes below
            size_t width = head;
            for (to = from; to < columns.size() && (to == from || width + 2 + columns[to].width() <= kWidth); ++to)
                width += 2 + columns[to].width();
            line(title, from, to, [](const TableColumn& c) { return left(c.label, c.width()); });
            line("", from, to, [](const TableColumn& c) { return left(c.unit, c.width()); });
            for (size_t i = 0; i < heads.size(); ++i)
                line(heads[i], from, to, [&](const TableColumn& c) { return c.text(i); });
        }
        return out;
    }
};

// Of the classes from `from` on that are by the same.
ClassTable table_of(const Conclusion& c, size_t from, size_t to, const std::vector<std::string>& names, size_t baseline,
                    Intervals intervals) {
    ClassTable t;
    size_t widest = 0;
    for (size_t k = from; k < to; ++k) widest = std::max(widest, columns_of(c.classes[k].name));
    const std::vector<size_t> order = baseline_first(names.size(), baseline);
    for (const size_t m : c.primary) {
        TableColumn column{c.list[m].label, c.list[m].unit};
        bool any = false;
        for (size_t k = from; k < to; ++k)
            for (const size_t v : order) {
                const auto& results = c.classes[k].results;
                any |= !std::isnan(results[v].metrics[m]);
                column.add(cell_of(results[v], results[baseline], m, column.unit, intervals));
            }
        if (any) t.columns.push_back(std::move(column)); // KV use and the like are no class's
    }
    for (size_t k = from; k < to; ++k)
        for (const size_t v : order)
            t.heads.push_back(left(v == baseline ? c.classes[k].name : "", widest) + "  " + names[v] +
                              (v == baseline ? " *" : ""));
    for (const std::string& head : t.heads) t.head = std::max(t.head, columns_of(head));
    return t;
}

}  // namespace

std::string class_table(const Conclusion& c, const std::vector<std::string>& variants, size_t baseline,
                        Intervals intervals) {
    std::string out;
    const ShortNames names = shortened(variants);
    for (size_t from = 0, to; from < c.classes.size(); from = to) {
        for (to = from; to < c.classes.size() && c.classes[to].by == c.classes[from].by;) to += 1;
        const std::string title = "by " + c.classes[from].by;
        const size_t rows = (to - from) * variants.size();
        if (intervals == Intervals::kHidden && rows > kMaxRows) {
            out += (out.empty() ? "" : "\n") + title + ": " + std::to_string(rows) + " rows, with --full\n";
            continue;
        }
        ClassTable t = table_of(c, from, to, names.names, baseline, intervals);
        t.head = std::max(t.head, columns_of(title));
        out += (out.empty() ? "" : "\n") + t.text(title);
    }
    if (!out.empty())
        out += "classes have no verdicts; a difference beside a value is a hint for the next experiment\n";
    return out;
}

}  // namespace patchbay::experiment
