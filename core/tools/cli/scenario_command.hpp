// patchbay scenario: play files that drive a scheduler without a model.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_scenario_command(Commands&);

}  // namespace patchbay::cli
