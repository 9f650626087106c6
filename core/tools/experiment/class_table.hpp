// Numbers by class of requests: a row a class and variant, a column a primary metric. Without verdicts.
#pragma once
#include <string>
#include <vector>

#include "experiment/conclusion.hpp"

namespace patchbay::experiment {

enum class Intervals { kHidden, kShown };

// Empty where the experiment has no classes.
std::string class_table(const Conclusion&, const std::vector<std::string>& variants, size_t baseline, Intervals);

}  // namespace patchbay::experiment
