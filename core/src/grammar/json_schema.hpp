// JSON Schema (2020-12) as rules. Every generated text is valid by the schema; not every valid spelling is
// generated. Unknown keywords are annotations; an assertion that cannot be kept is refused by name.
#pragma once
#include <string_view>

#include "grammar/json_text.hpp"

namespace patchbay::grammar {

// The root: a value without white space around it.
Result<RuleId> parse_json_schema(Rules&, std::string_view schema, Whitespace, Work&);

}  // namespace patchbay::grammar
