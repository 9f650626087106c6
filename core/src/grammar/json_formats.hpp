// The values of JSON Schema's `format` that are generated, as regular expressions of what they allow.
#pragma once
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace patchbay::grammar {

// Each a part of what its RFC allows: no leap seconds, no quoted local parts, no years before 0001.
Result<std::string> format_regex(std::string_view format);

}  // namespace patchbay::grammar
