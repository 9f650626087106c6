// One value of a flattened configuration, read without taking a value of another type for a missing one.
#pragma once
#include <optional>
#include <string>

#include "weights/checkpoint.hpp"

namespace patchbay::weights {

// Of a key that holds one value; none: it is missing, or null. Refuses a list or map there, and parents of another
// type.
Result<std::optional<std::string>> single_value(const FlatConfig&, const std::string& key);

}  // namespace patchbay::weights
