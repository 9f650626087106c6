// Expressions that call no rules, combined as sets of texts. For the JSON Schema front end.
#pragma once
#include <vector>

#include "base/result.hpp"
#include "grammar/rules.hpp"

namespace patchbay::grammar {

// The texts that all of them match; at least one is given.
Result<ExprId> common_to(Rules&, const std::vector<ExprId>&, Work&);
// The texts that the first matches, and none of the others.
Result<ExprId> without_any(Rules&, ExprId, std::vector<ExprId> excluded, Work&);

}  // namespace patchbay::grammar
