// patchbay run-child: a run in a process of its own, started by `patchbay run`.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_run_child_command(Commands&);

}  // namespace patchbay::cli
