// Reads one value of a flattened configuration; a value of the wrong type is an error, never treated as missing.
#pragma once
#include <optional>
#include <string>

#include "weights/checkpoint.hpp"

namespace patchbay::weights {

// The value of a key with a single value; none: missing or null. Refuses a list or map, and parents of another
// type.
Result<std::optional<std::string>> single_value(const FlatConfig&, const std::string& key);

}  // namespace patchbay::weights
