#include "weights/gguf_chat.hpp"

#include "base/refusals.hpp"
#include "weights/gguf_model.hpp"

namespace patchbay::weights {
namespace {

constexpr size_t kMaxTemplateBytes = 4u << 20;

Failure fault(const Gguf& file, const std::string& key, const std::string& expected) {
    return invalid(file.where + ": " + key + " is " + file.header.find(key)->shown() + ", expected " + expected);
}

Result<std::string> text_of(const Gguf& file, const std::string& key) {
    const GgufValue* const value = file.header.find(key);
    if (!value) return std::string();
    const auto text = value->text();
    if (!text || text->size() > kMaxTemplateBytes)
        return fault(file, key, "a string of at most " + std::to_string(kMaxTemplateBytes) + " bytes");
    return std::string(*text);
}

// The text of the token whose id the key has.
Result<std::string> token_of(const Gguf& file, const std::string& key) {
    const GgufValue* const value = file.header.find(key);
    const GgufValue* const tokens = file.header.find("tokenizer.ggml.tokens");
    if (!value || !tokens || !tokens->count || tokens->type != GgufType::kString) return std::string();
    const auto id = value->integer();
    if (!id || *id < 0 || static_cast<uint64_t>(*id) >= *tokens->count)
        return fault(file, key, "a token id below " + std::to_string(*tokens->count));
    return std::string((*tokens->texts())[static_cast<size_t>(*id)]);
}

}  // namespace

Result<GgufChat> read_gguf_chat(const std::filesystem::path& path) {
    PB_TRY(const GgufFile file, open_gguf(path));
    GgufChat out;
    PB_TRY(out.chat_template, text_of(file.gguf, "tokenizer.chat_template"));
    PB_TRY(out.tool_template, text_of(file.gguf, "tokenizer.chat_template.tool_use"));
    PB_TRY(out.bos_token, token_of(file.gguf, "tokenizer.ggml.bos_token_id"));
    PB_TRY(out.eos_token, token_of(file.gguf, "tokenizer.ggml.eos_token_id"));
    return out;
}

}  // namespace patchbay::weights
