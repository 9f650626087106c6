// Traces of one JSON value a line: the lines of limited size, their values, and where a fault is.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "experiment/traces/builder.hpp"

namespace patchbay::experiment {

// `take` gets each value with the number of its line, from 1. Blank lines are left out. Fails at a line that is too
// long or no JSON, naming its line and column, and as `take` fails.
Result<> each_json_line(std::string_view text, TraceBuilder&,
                        const std::function<Result<>(const nlohmann::json&, size_t line)>& take);

}  // namespace patchbay::experiment
