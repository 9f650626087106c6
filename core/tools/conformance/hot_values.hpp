// Other values for the parameters that may change on a live component.
#pragma once
#include <string>
#include <vector>

#include "conformance/check.hpp"

namespace patchbay::conformance {

struct HotValue {
    std::string key, first, other; // the value of a fresh object, and one more that the schema allows
};

// Of each hot parameter that has more than one value; not of texts, which only their plugin can read.
std::vector<HotValue> hot_values(Subject&);

}  // namespace patchbay::conformance
