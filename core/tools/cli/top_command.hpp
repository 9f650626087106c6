// `patchbay status`, `swap`, `reload` and `drain`: live control of an engine that runs, over its admin address.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_top_command(Commands&);

}  // namespace patchbay::cli
