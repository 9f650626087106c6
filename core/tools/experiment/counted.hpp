// Which requests of a run count where the file leaves it to the rule: of steady traffic all but the first, when the
// engine is empty, and the last, after which nothing new arrives; all of any other traffic.
#pragma once
#include <string>

#include "experiment/spec.hpp"
#include "experiment/workloads.hpp"

namespace patchbay::experiment {

inline constexpr CountingWindow kSteadyWindow{{0.1, true}, {0.9, true}};
inline constexpr uint32_t kRequestsForWindow = 50; // of a run; of fewer too few would be left

void apply_window_rule(ExperimentSpec&, const Workloads&);
std::string counted_text(const ExperimentSpec&, const Workloads&); // "counted: requests that arrive …", and why

}  // namespace patchbay::experiment
