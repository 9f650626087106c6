// Characters by a property of Unicode, as \p{…} of regular expressions names it.
#pragma once
#include <string_view>

#include "base/result.hpp"
#include "grammar/code_points.hpp"

namespace patchbay::grammar {

// name: "L", "Letter", "Script=Greek", …, with the names of ICU, by its version of Unicode. Fails for unknown names.
Result<CodePoints> unicode_class(std::string_view name);

// Those that this version of Unicode has assigned: of others no property is known.
const CodePoints& assigned_characters();

}  // namespace patchbay::grammar
