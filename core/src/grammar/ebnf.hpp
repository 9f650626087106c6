// Grammars in the EBNF that llama.cpp calls GBNF and that vLLM's `grammar` takes: rules `name ::= …`, the first of
// them named root.
#pragma once
#include <string_view>
#include <vector>

#include "grammar/rules.hpp"

namespace patchbay::grammar {

inline constexpr size_t kMaxEbnfBytes = 256u << 10;

// What a rule is of its alternatives, without direct recursion at their left.
ExprId body_of(Rules&, RuleId, const std::vector<std::vector<ExprId>>& alternatives);

// The root. A rule that is recursive directly at the left of its alternatives is rewritten as a repetition.
Result<RuleId> parse_ebnf(Rules&, std::string_view text, Work&);

}  // namespace patchbay::grammar
