// Shares as an experiment file has them: "5%", "2.5 %".
#pragma once
#include <optional>
#include <string_view>

namespace patchbay::experiment {

struct Measure { // a number and what stands after it, without the space between them
    double value;
    std::string_view unit;
};
std::optional<Measure> measure_of(std::string_view); // "5s" → 5, "s"; none: it begins with no number
std::optional<double> share_of(std::string_view);    // "5%" → 0.05; none: no share from 0

}  // namespace patchbay::experiment
