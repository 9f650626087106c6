// `patchbay chat`: a conversation with a model at the terminal.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_chat_command(Commands&);

}  // namespace patchbay::cli
