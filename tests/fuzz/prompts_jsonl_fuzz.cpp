// A workload's file of prompts, one JSON object a line; the first line is the path of the field.
#include <cstddef>
#include <cstdint>

#include "experiment/input_files.hpp"
#include "fuzz_folder.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size > 1 << 14) return 0;
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    const size_t end = std::min(all.find('\n'), all.size());
    const auto path = fuzz_folder() / "prompts.jsonl";
    std::ofstream(path, std::ios::binary) << all.substr(std::min(end + 1, all.size()));
    const auto prompts = patchbay::experiment::read_jsonl_prompts(path, std::string(all.substr(0, end)));
    if (!prompts) return prompts.error().empty() ? __builtin_trap(), 0 : 0;
    for (const std::string& prompt : *prompts)
        if (prompt.empty()) __builtin_trap();
    return 0;
}
