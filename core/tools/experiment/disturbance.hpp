// Runs of which other processes, or the host of a virtual machine, took CPU time. One that lost more than the limit is
// repeated once; of the two, the one that lost less counts, unless the second one failed. The choice never looks at
// numbers, and a failure is said whichever attempt counts.
#pragma once
#include <string>

#include "experiment/run_summary.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

bool is_disturbed(const Disturbance&, const RunSummary&);
// Of two attempts: whether the second one counts.
bool second_counts(const RunSummary& first, const RunSummary& second);
// Makes it the attempt that does not count, and says why, where that is not that it failed.
void supersede(RunSummary&, const RunSummary& counts);
// Whether it has faults beside that the other attempt counts.
bool has_own_faults(const RunSummary&);
// How many runs were repeated, and which are disturbed all the same; empty: none.
std::string disturbance_notice(const Disturbance&, const std::vector<RunSummary>&);

}  // namespace patchbay::experiment
