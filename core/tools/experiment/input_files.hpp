// Files of texts that a workload is made of, read with limits: they come from anywhere. Errors name the file and the
// line.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "experiment/traces/trace.hpp"

namespace patchbay::experiment {

// A JSON object a line; `field` is a dotted path to a text in it. Blank lines are passed over.
Result<std::vector<std::string>> read_jsonl_prompts(const std::filesystem::path&, const std::string& field,
                                                    const InputLimits& = {});
Result<std::string> read_text(const std::filesystem::path&, const InputLimits& = {});

}  // namespace patchbay::experiment
