// Results as a table for a terminal: a metric a row, a variant a column.
#pragma once
#include <string>
#include <vector>

#include "experiment/conclusion.hpp"

namespace patchbay::experiment {

enum class Colour { kOff, kOn };

std::string results_table(const Conclusion&, const std::vector<std::string>& variants, size_t baseline, Colour);

}  // namespace patchbay::experiment
