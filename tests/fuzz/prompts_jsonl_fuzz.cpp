// A workload's file of prompts, one JSON object a line; the first line is the path of the field.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "experiment/input_files.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size > 1 << 14) return 0;
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    const size_t end = std::min(all.find('\n'), all.size());
    const std::string_view text = all.substr(std::min(end + 1, all.size()));
    const auto prompts = patchbay::experiment::jsonl_prompts(text, "prompts.jsonl", std::string(all.substr(0, end)));
    if (!prompts) return prompts.error().empty() ? __builtin_trap(), 0 : 0;
    for (const std::string& prompt : *prompts)
        if (prompt.empty()) __builtin_trap();
    return 0;
}
