// patchbay run: an experiment from its YAML to a table and a report.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_run_command(Commands&);

}  // namespace patchbay::cli
