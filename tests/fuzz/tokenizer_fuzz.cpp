// Two ways in, by the first byte. Even: the rest is a tokenizer.json; what is accepted must survive hard texts. Odd:
// the rest is text for a small fixed tokenizer, whose tokens' bytes must be that text again.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/byte_alphabet.hpp"
#include "text/tokenizer_json.hpp"

namespace {

using namespace patchbay::text;
using nlohmann::json;

// The fuzzer would never find 256 byte tokens, so every vocabulary gets them.
void give_bytes(json& tokenizer) {
    if (!tokenizer.is_object() || !tokenizer["model"].is_object() || !tokenizer["model"]["vocab"].is_object()) return;
    for (int b = 0; b < 256; ++b) tokenizer["model"]["vocab"][spell_byte(static_cast<unsigned char>(b))] = 1000 + b;
}

std::shared_ptr<const Tokenizer> fixed() {
    json tokenizer = json::parse(R"({
        "model": {"vocab": {"Ġt": 1, "he": 2, "Ġthe": 3, "aa": 4, "aaaa": 5},
                  "merges": ["h e", "Ġ t", "Ġt he", "a a", "aa aa"]},
        "added_tokens": [{"id": 6, "content": "<s>", "special": true},
                         {"id": 7, "content": "aab", "single_word": true}],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "behavior": "Isolated",
             "pattern": {"Regex": "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
            {"type": "ByteLevel", "add_prefix_space": false}]}})");
    give_bytes(tokenizer);
    return *tokenizer_from_json(tokenizer, json::object(), "fixed");
}

void use(const std::shared_ptr<const Tokenizer>& tokenizer, std::string_view text) {
    const auto ids = tokenizer->encode(text);
    Detokenizer detokenizer(tokenizer);
    std::string joined;
    for (const TokenId id : ids) joined += detokenizer.add(id);
    if (joined + detokenizer.finish() != tokenizer->decode(ids)) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
    if (data[0] % 2) {
        static const auto tokenizer = fixed();
        use(tokenizer, rest);
        std::string bytes;
        for (const TokenId id : tokenizer->encode(rest)) bytes += tokenizer->token_bytes(id);
        if (bytes != rest) __builtin_trap();
        return 0;
    }
    json parsed = json::parse(rest, nullptr, false);
    if (parsed.is_discarded() || rest.size() > 1 << 16) return 0;
    give_bytes(parsed);
    const auto made = tokenizer_from_json(parsed, parsed, "fuzz");
    if (!made) return made.error().empty() ? __builtin_trap(), 0 : 0;
    use(*made, "Hello  world, aaaa\n\n<s> 12345 caf\xC3\xA9 \xE3\x80\x80 \xF0\x9F\xA6\x99 \xFF\xC3 's 'LL \r\n");
    return 0;
}
