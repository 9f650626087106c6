// How a string stands among a configuration's flattened values: without quotes, unless it would then read as a value of
// another type. "silu" → silu, but "8" → "8" with its quotes: no number. For what flattens JSON and YAML.
#pragma once
#include <string>

namespace patchbay {

std::string flat_string(std::string text);

}  // namespace patchbay
