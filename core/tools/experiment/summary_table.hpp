// What fits a screen: a variant a row, a primary metric a column. For the end of `patchbay run` and for `runs show`.
#pragma once
#include <string>
#include <vector>

#include "experiment/conclusion.hpp"
#include "experiment/results_table.hpp"

namespace patchbay::experiment {

struct ShortNames {
    std::string common;             // what all of the names have: "max_num_seqs=8"; empty: nothing
    std::string head;               // what the parts of the names are: "scheduler max_num_seqs"; empty: no parts
    std::vector<std::string> names; // "fcfs 8"; different where the names are
};
ShortNames shortened(const std::vector<std::string>& names);

std::string summary_table(const Conclusion&, const std::vector<std::string>& variants, size_t baseline, Colour);

}  // namespace patchbay::experiment
