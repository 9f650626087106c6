// A chat template, up to a line of dashes, and after it the JSON of its variables: whatever they are, a render ends in
// a text or a failure with a line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "text/chat_template/chat_template.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using nlohmann::ordered_json;
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const size_t bar = std::min(input.find("\n---\n"), input.size());
    const auto parsed = patchbay::text::ChatTemplate::parse(input.substr(0, bar), "t");
    if (!parsed) {
        if (!parsed.error().starts_with("t:")) std::abort();
        return 0;
    }
    ordered_json variables;
    if (bar < input.size()) variables = ordered_json::parse(input.substr(bar + 5), nullptr, false);
    if (!variables.is_object())
        variables = {{"messages", {{{"role", "user"}, {"content", "Hi"}}, {{"role", "assistant"}, {"content", "ä"}}}},
                     {"add_generation_prompt", true}};
    const auto text = parsed->render(variables, {.steps = 20'000, .made_bytes = 1u << 20, .output_bytes = 1u << 16});
    if (!text && !text.error().starts_with("t:")) std::abort();
    return 0;
}
