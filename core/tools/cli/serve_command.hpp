// patchbay serve: OpenAI's API over HTTP.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_serve_command(Commands&);

}  // namespace patchbay::cli
