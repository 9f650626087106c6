// Free text in which some parts have a form: from a trigger, such as "<function=", to the end of a tag. Both formats of
// vLLM's `structural_tag`: a list of structures with triggers, and a tree of formats.
#pragma once
#include <string_view>

#include "grammar/json_text.hpp"

namespace patchbay::grammar {

// text: JSON. Errors name the place in it.
Result<RuleId> parse_structural_tag(Rules&, std::string_view text, Whitespace, Work&);

}  // namespace patchbay::grammar
