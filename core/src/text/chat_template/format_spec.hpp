// Python's format(value, spec): "{:>8.3f}" has the spec ">8.3f". Used by str.format().
#pragma once
#include <string>

#include "text/chat_template/builtins.hpp"

namespace patchbay::text::chat {

std::string formatted(Budget&, const Value&, const std::string& spec);

}  // namespace patchbay::text::chat
