// The status of a running engine as `patchbay status` prints it.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace patchbay::cli {

void print_status(const nlohmann::ordered_json&); // of GET /status
// "swap scheduler fcfs→sjf: refused in phase load: cannot read state 'fcfs/1'"
std::string swap_text(const nlohmann::ordered_json& swap);

}  // namespace patchbay::cli
