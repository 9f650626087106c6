// Files that an experiment names and that are not there: found before anything is run.
#pragma once
#include "config/document.hpp"

namespace patchbay::experiment {

// A fault for each `path` of workload.prompts.
void check_inputs(const config::Node& document, config::Faults&);

}  // namespace patchbay::experiment
