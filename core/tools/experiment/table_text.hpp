// Numbers and columns of the tables that show results.
#pragma once
#include <string>

#include "experiment/comparison.hpp"
#include "experiment/results_table.hpp"

namespace patchbay::experiment {

size_t columns_of(const std::string& text); // of UTF-8
std::string right(const std::string& text, size_t width);
std::string left(const std::string& text, size_t width);
std::string painted(const std::string& text, Verdict, Colour); // green for better, red for worse

// A difference in % of the baseline, or plain where the baseline is 0 or the unit is a share.
struct Shift {
    bool relative;
    double baseline;
    std::string suffix;

    Shift(double base, const std::string& unit);
    double of(double difference) const { return relative ? 100 * difference / baseline : difference; }
    std::string size(double difference) const;   // without a sign: "3.1 %"
    std::string number(double difference) const; // "+12.3"
};

}  // namespace patchbay::experiment
