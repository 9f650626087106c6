// patchbay config check | show | schema: what a file means before anything runs.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_config_command(Commands&);

}  // namespace patchbay::cli
