// Grammars as Lark writes them: rules `name: …`, terminals `NAME: …`, the root is `start`. Terminals stand for all
// texts that they match; no lexer prefers the longest one.
#pragma once
#include <string_view>

#include "grammar/rules.hpp"

namespace patchbay::grammar {

bool is_lark(std::string_view text); // rather than GBNF: its first rule has ':', not '::='

// The root. A rule that is recursive directly at the left of its alternatives is rewritten as a repetition.
Result<RuleId> parse_lark(Rules&, std::string_view text, Work&);

}  // namespace patchbay::grammar
