// Whether reading a text of JSON rounds its numbers: for schemas, in which a rounded number allows another value.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace patchbay {

// Of a text that is JSON: fails with the first number that is rounded, and the member that it stands in. within: only
// numbers in these members of the outermost object count; none: all.
Result<> check_exact_numbers(std::string_view json, const std::vector<std::string>& within = {});

}  // namespace patchbay
