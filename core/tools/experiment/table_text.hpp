// Numbers and columns of the tables that show results.
#pragma once
#include <string>
#include <vector>

#include "experiment/comparison.hpp"
#include "experiment/results_table.hpp"

namespace patchbay::experiment {

size_t columns_of(const std::string& text); // of UTF-8
std::string right(const std::string& text, size_t width);
std::string left(const std::string& text, size_t width);
std::string painted(const std::string& text, Verdict, Colour); // green for better, red for worse

std::vector<std::string> words_of(const std::string& text); // between spaces, empty ones too
std::string trimmed(std::string line);                      // without spaces at its end
std::vector<size_t> baseline_first(size_t variants, size_t baseline);

struct TableCell {
    std::string value, change; // change: from the baseline
    Verdict verdict = Verdict::kNone;
};

struct TableColumn { // under two lines of head
    std::string label, unit;
    std::vector<TableCell> cells{};
    size_t value = 0, change = 0; // widths

    void add(TableCell);
    size_t width() const;
    std::string text(size_t cell) const;
};

// "≥50.0" where the value is a lower bound.
std::string value_text(const VariantResult&, size_t metric);

// A difference in % of the baseline's size, or plain where the baseline is 0 or the unit is a share. More is + also
// where the baseline is below 0.
struct Shift {
    bool relative;
    double baseline; // its size
    std::string suffix;

    Shift(double base, const std::string& unit);
    double of(double difference) const { return relative ? 100 * difference / baseline : difference; }
    std::string size(double difference) const;   // without a sign: "3.1 %"
    std::string number(double difference) const; // "+12.3"
};

std::string bound_sign(Verdict); // "≥", "≤" before a difference that is a bound, else nothing

}  // namespace patchbay::experiment
