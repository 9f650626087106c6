// What a GGUF file says of chats: templates, and the texts of the tokens that begin and end a text. For the server.
#pragma once
#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace patchbay::weights {

struct GgufChat {
    std::string chat_template, tool_template; // the second one: for requests with tools; empty: none
    std::string bos_token, eos_token;         // empty: the file names none
};
Result<GgufChat> read_gguf_chat(const std::filesystem::path& file);

}  // namespace patchbay::weights
