// patchbay workload: what a recorded trace contains, before an experiment is made of it.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_workload_command(Commands&);

}  // namespace patchbay::cli
