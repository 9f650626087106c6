// A model's chat template: Jinja as Hugging Face renders it, from messages to the text of a prompt. Constant after it
// was parsed, so any number of threads may render it. Used by the server.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace patchbay::text {

struct ChatTemplateLimits { // of one render
    uint64_t steps = 20'000'000;       // statements, expressions and values looked at
    uint64_t made_bytes = 512ull << 20; // of all texts on the way
    size_t output_bytes = 16u << 20;
};

class ChatTemplate {
  public:
    // name: of the file, for errors: "name:12: unknown statement 'foo'".
    static Result<ChatTemplate> parse(std::string_view source, std::string name);

    // Whether it reads contents of messages as lists of parts, such as {"type": "text", "text": …}, and not as texts.
    bool takes_parts() const;
    // Whether it tests contents of messages for none, and so has a way of its own for those without one.
    bool tests_content_for_none() const;

    // variables: an object: messages, add_generation_prompt, tools, bos_token, …
    // date: what strftime_now() gives for a format; empty: now, in local time as transformers gives it.
    Result<std::string> render(const nlohmann::ordered_json& variables, const ChatTemplateLimits& = {},
                               std::function<std::string(const std::string&)> date = {}) const;

  private:
    struct Parsed;
    std::shared_ptr<const Parsed> parsed_;
};

}  // namespace patchbay::text
