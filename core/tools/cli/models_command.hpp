// patchbay models [ARCHITECTURE]: which architectures can be served, and what is done with each key of config.json.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_models_command(Commands&);

}  // namespace patchbay::cli
