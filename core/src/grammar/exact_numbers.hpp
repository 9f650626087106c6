// Whether the numbers of a JSON text are kept exactly. For the JSON Schema front end, which must not round them.
#pragma once
#include <string_view>

#include "base/result.hpp"

namespace patchbay::grammar {

// Of a text that is JSON: fails with the number, and the member that it stands in, where reading it rounds it.
Result<> check_numbers(std::string_view json);

}  // namespace patchbay::grammar
