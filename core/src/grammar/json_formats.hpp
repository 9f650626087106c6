// The supported values of JSON Schema's `format`, as regular expressions of the texts that they allow.
#pragma once
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace patchbay::grammar {

// Each is a subset of its RFC: no leap seconds, no quoted local parts, no years before 0001.
Result<std::string> format_regex(std::string_view format);

}  // namespace patchbay::grammar
