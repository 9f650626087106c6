// What violates a schema, as schemas. For `not`, `oneOf` and `if` of the JSON Schema front end.
#pragma once
#include <functional>

#include "base/result.hpp"
#include "grammar/json_text.hpp"

namespace patchbay::grammar {

// Follows the $ref of a schema; null: it leads nowhere.
using FollowReference = std::function<const Json*(const Json& with_ref)>;

// Schemas each of whose values violates the given one. A value may violate it and be in none of them, where no schema
// that can be kept says so; no schema at all: nothing that can be kept violates it. `budget`: bytes that may be copied,
// and schemas looked at; 0 after it is used up, and then the list may lack some.
std::vector<Json> violations_of(const Json& schema, const FollowReference&, size_t& budget);

// A `not` of one type, enum, const, pattern or multipleOf, which constraints keep as it is.
bool is_plain_not(const Json& negated);

}  // namespace patchbay::grammar
