// Values that schemas contain, compared. For the JSON Schema front end.
#pragma once
#include <cstdint>
#include <span>

#include "grammar/json_text.hpp"

namespace patchbay::grammar {

// The values of enum or const; none without them.
std::span<const Json> values_of(const Json& schema);
// Equality of JSON values: the order of members does not matter; 1 equals 1.0.
bool same_value(const Json&, const Json&);
// The approximate cost of comparing a value: the number of its parts.
uint64_t cost_of(const Json&);
// The cost of comparing all pairs.
uint64_t cost_of(std::span<const Json>, std::span<const Json>);

}  // namespace patchbay::grammar
