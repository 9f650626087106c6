// The body of a request to the server, for completions or, after a first byte 'c', for chats: read or refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "serve/generation_request.hpp"
#include "text/tokenizer_json.hpp"

namespace {

using namespace patchbay;

serve::ServedModel model() {
    serve::ServedModel out;
    out.names = {"demo"};
    out.max_model_len = 512;
    const auto made = text::tokenizer_from_json(nlohmann::json::parse(R"({
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<": 3, ">": 4, "Ġ": 5}, "merges": ["a b"]},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"}})"),
                                                {}, "fixed");
    if (!made) std::abort();
    out.tokenizer = *made;
    out.vocab_size = 6;
    constexpr const char* kTemplate = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
    out.chat_template = *text::ChatTemplate::parse(kTemplate, "t");
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const serve::ServedModel served = model();
    std::string text(reinterpret_cast<const char*>(data), size);
    const bool chat = text.starts_with('c');
    if (chat) text.erase(0, 1);
    const auto body = serve::parse_body(text);
    if (!body) return 0;
    const serve::ReadRequest got = chat ? serve::read_chat(*body, served) : serve::read_completion(*body, served);
    if (got.refusal) {
        if (got.refusal->failure.text.empty()) std::abort();
        return 0;
    }
    for (const serve::Prompt& prompt : got.request.prompts)
        if (prompt.tokens.empty()) std::abort();
    if (got.request.sampling.max_tokens == 0 && got.request.max_tokens != 0u) std::abort();
    return 0;
}
