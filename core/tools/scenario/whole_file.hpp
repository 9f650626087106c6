// What only a whole scenario file shows: names that do not exist, steps in the wrong place, more than its limits allow.
// Used by scenario/load.cpp.
#pragma once
#include "config/show.hpp"
#include "scenario/scenario.hpp"

namespace patchbay::scenario {

void check_whole_file(const Scenario&, const config::Node& root, config::Faults&);

}  // namespace patchbay::scenario
