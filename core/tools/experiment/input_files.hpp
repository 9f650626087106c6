// Files of texts that a workload is made of, read with limits: they come from anywhere. Errors name the file and the
// line.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "experiment/traces/trace.hpp"

namespace patchbay::experiment {

struct InputFile {
    std::string path, sha256;
};
// The whole of it, which is noted in `files`.
Result<std::string> read_input(const std::filesystem::path&, std::vector<InputFile>& files, const InputLimits& = {});

// A JSON object a line; `field` is a dotted path to a text in it. Blank lines are passed over. path: for errors.
Result<std::vector<std::string>> jsonl_prompts(std::string_view text, const std::filesystem::path& path,
                                               const std::string& field, const InputLimits& = {});

}  // namespace patchbay::experiment
