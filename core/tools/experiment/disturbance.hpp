// Runs of which other processes, or the host of a virtual machine, took CPU time. One that lost more than the limit is
// repeated once; of the two, the one that lost less counts. The choice looks at CPU time alone, never at results.
#pragma once
#include <string>

#include "experiment/run_summary.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

bool is_disturbed(const Disturbance&, const RunSummary&);
// Of two attempts: whether the second one counts.
bool second_counts(const RunSummary& first, const RunSummary& second);
std::string superseded_reason(const RunSummary& superseded, const RunSummary& counts);
// How many runs were repeated, and which are disturbed all the same; empty: none.
std::string disturbance_notice(const Disturbance&, const std::vector<RunSummary>&);

}  // namespace patchbay::experiment
