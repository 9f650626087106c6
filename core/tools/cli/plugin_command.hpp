// patchbay plugin list | info | test: what is installed, what it can be told, and whether it keeps the contract.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_plugin_command(Commands&);

}  // namespace patchbay::cli
