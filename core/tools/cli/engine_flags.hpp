// The flags of an engine's configuration, alike in every command that makes one engine. Used by generate and serve.
#pragma once
#include "cli/key_flags.hpp"

namespace patchbay::cli {

void add_engine_flags(const KeyFlags& key);

}  // namespace patchbay::cli
