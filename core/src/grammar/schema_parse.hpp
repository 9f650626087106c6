// Reads the text of a schema. For the JSON Schema front end.
#pragma once
#include <cstddef>
#include <string_view>

#include "base/result.hpp"
#include "grammar/json_text.hpp"

namespace patchbay::grammar {

inline constexpr size_t kMaxSchemaMembers = 2000; // of an object

// Its references are written as localise_references() writes them.
Result<Json> parse_schema(std::string_view);

}  // namespace patchbay::grammar
