// How a string is written among flattened configuration values: without quotes, unless it would then read as a value
// of another type. "silu" → silu, but "8" keeps its quotes. For code that flattens JSON and YAML.
#pragma once
#include <string>

namespace patchbay {

std::string flat_string(std::string text);

}  // namespace patchbay
