// What a running engine says of one component: for `patchbay plugin info --admin`.
#pragma once
#include <string>

#include "cli/running_engine.hpp"

namespace patchbay::cli {

// Prints time in its calls, faults by reason, and the swaps of its slot. name: "fcfs", or "scheduler/fcfs". The
// failure: the engine cannot be reached, or has not had a component of that name since it began.
Result<> print_live_component(const serve::AdminAddress&, const std::string& name);

}  // namespace patchbay::cli
