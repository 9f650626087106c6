// JSON Schema (2020-12) as rules. What is generated is right by the schema; not every spelling of what is right is
// generated. A keyword that is not known is refused by name.
#pragma once
#include <string_view>

#include "grammar/json_text.hpp"

namespace patchbay::grammar {

// The root: a value without white space around it.
Result<RuleId> parse_json_schema(Rules&, std::string_view schema, Whitespace, Work&);

}  // namespace patchbay::grammar
