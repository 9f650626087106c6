// patchbay tokenize and patchbay detokenize: a text's token ids, and the text of ids, without a model.
#pragma once
#include "cli/command.hpp"

namespace patchbay::cli {

void add_tokenize_commands(Commands&);

}  // namespace patchbay::cli
