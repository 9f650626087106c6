// patchbay generate: text from prompts, streamed.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_generate_command(Commands&);

}  // namespace patchbay::cli
