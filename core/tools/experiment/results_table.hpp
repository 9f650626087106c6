// All results as a table for a terminal: a metric a row, a variant a column. summary_table.hpp has the short one.
#pragma once
#include <string>
#include <vector>

#include "experiment/conclusion.hpp"

namespace patchbay::experiment {

enum class Colour { kOff, kOn };

// At spaces, so that no line has more columns; a longer word has a line of its own.
std::string wrapped(const std::string& text, size_t columns);

std::string results_table(const Conclusion&, const std::vector<std::string>& variants, size_t baseline, Colour);

}  // namespace patchbay::experiment
