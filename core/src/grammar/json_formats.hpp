// The supported values of JSON Schema's `format`, as regular expressions of the texts that they allow.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace patchbay::grammar {

// Each is a subset of its RFC: no leap seconds, no quoted local parts, no years before 0001. None: the format is an
// annotation.
std::optional<std::string> format_regex(std::string_view format);

}  // namespace patchbay::grammar
