// Characters by a property of Unicode, as \p{…} of regular expressions names it.
#pragma once
#include <memory>
#include <string_view>

#include "base/result.hpp"
#include "grammar/code_points.hpp"
#include "grammar/dfa.hpp"

namespace patchbay::grammar {

// name: "L", "Letter", "Script=Greek", …, with the names of ICU, by its version of Unicode. Fails for unknown names.
// Made once and kept, up to kMaxKeptClasses of them. [any thread]
inline constexpr size_t kMaxKeptClasses = 1024;
Result<std::shared_ptr<const CodePoints>> unicode_class(std::string_view name);

// Those that this version of Unicode has assigned: of others no property is known.
const CodePoints& assigned_characters();

// With all that are the same but for their case, as Python's re.IGNORECASE has it: 's', 'S' and U+017F.
Result<CodePoints> in_either_case(const CodePoints&, Work&);

}  // namespace patchbay::grammar
