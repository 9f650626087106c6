// patchbay plugin list | info | test: what is installed, its parameters, and whether it keeps the contract.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_plugin_command(Commands&);

}  // namespace patchbay::cli
