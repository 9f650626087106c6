// The files that a workload is made of, read with limits: they come from anywhere. Errors name the file and the line.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace patchbay::experiment {

struct InputLimits {
    uint64_t file_bytes = 1ull << 30, line_bytes = 4ull << 20;
    uint32_t rows = 4'000'000;
};

struct TraceRow {
    uint64_t at_ns = 0; // since the first row
    uint32_t prompt_tokens = 0, output_tokens = 0;
};

// A JSON object a line; `field` is a dotted path to a text in it. Blank lines are passed over.
Result<std::vector<std::string>> read_jsonl_prompts(const std::filesystem::path&, const std::string& field,
                                                    const InputLimits& = {});
// TIMESTAMP,ContextTokens,GeneratedTokens with times as "2023-11-16 18:15:46.6805900", never going back.
Result<std::vector<TraceRow>> read_azure_trace(const std::filesystem::path&, uint32_t skip, uint32_t max_rows,
                                               const InputLimits& = {});
Result<std::string> read_text(const std::filesystem::path&, const InputLimits& = {});

}  // namespace patchbay::experiment
