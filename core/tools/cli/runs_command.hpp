// patchbay runs: stored experiments: list them, show and compare results, export tables, remove.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_runs_command(Commands&);

}  // namespace patchbay::cli
