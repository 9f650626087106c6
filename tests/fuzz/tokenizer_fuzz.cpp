// Three ways in, by the first byte. Even: the rest is a tokenizer.json; what is accepted must survive hard texts. Odd:
// the rest is text for a small fixed tokenizer, byte-level or with byte fallback, which must give that text back.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/utf8.hpp"
#include "text/byte_alphabet.hpp"
#include "text/detokenizer.hpp"
#include "text/tokenizer_json.hpp"

namespace {

using namespace patchbay::text;
using nlohmann::json;

enum class Bytes { kAlphabet, kFallback };

// The fuzzer would never find 256 byte tokens, so every vocabulary of BPE gets those that it may need.
void give_bytes(json& tokenizer, Bytes which) {
    if (!tokenizer.is_object() || !tokenizer["model"].is_object() || !tokenizer["model"]["vocab"].is_object()) return;
    for (int b = 0; b < 256; ++b) {
        char spelled[8];
        std::snprintf(spelled, sizeof spelled, "<0x%02X>", b);
        const std::string name = which == Bytes::kFallback ? spelled : spell_byte(static_cast<unsigned char>(b));
        tokenizer["model"]["vocab"][name] = (which == Bytes::kFallback ? 2000 : 1000) + b;
    }
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
    give_bytes(tokenizer, Bytes::kAlphabet);
    return *tokenizer_from_json(tokenizer, json::object(), "fixed");
}

std::shared_ptr<const Tokenizer> fixed_with_fallback() {
    json tokenizer = json::parse(R"({
        "model": {"vocab": {"▁": 1, "t": 2, "h": 3, "e": 4, "▁t": 5, "he": 6, "▁the": 7, "▁▁": 8, "é": 9},
                  "merges": ["h e", "▁ t", "▁t he", "▁ ▁"], "byte_fallback": true},
        "pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "first", "split": false},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
            {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}})");
    give_bytes(tokenizer, Bytes::kFallback);
    return *tokenizer_from_json(tokenizer, json::object(), "fixed");
}

void use(const std::shared_ptr<const Tokenizer>& tokenizer, std::string_view text) {
    const auto ids = tokenizer->encode(text);
    Detokenizer detokenizer(tokenizer);
    std::string joined;
    for (const TokenId id : ids) {
        if (id < 0 || static_cast<uint32_t>(id) >= tokenizer->vocab_size()) __builtin_trap();
        const std::string delta = detokenizer.add(id);
        if (patchbay::valid_prefix(delta) != delta.size()) __builtin_trap();
        joined += delta;
    }
    if (joined + detokenizer.finish() != tokenizer->decode(ids)) __builtin_trap();
}

// Metaspace takes a leading space for its own, and U+2581 for a space.
void must_come_back(const Tokenizer& tokenizer, std::string_view text) {
    const bool whole = patchbay::valid_prefix(text) == text.size();
    const bool plain = whole && !text.starts_with(' ') && text.find("▁") == text.npos;
    if (plain && tokenizer.decode(tokenizer.encode(text)) != text) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
    if (data[0] % 4 == 1) {
        static const auto tokenizer = fixed();
        use(tokenizer, rest);
        std::string bytes;
        for (const TokenId id : tokenizer->encode(rest)) bytes += tokenizer->token_bytes(id);
        if (bytes != rest) __builtin_trap();
        return 0;
    }
    if (data[0] % 4 == 3) {
        static const auto tokenizer = fixed_with_fallback();
        use(tokenizer, rest);
        must_come_back(*tokenizer, rest);
        return 0;
    }
    json parsed = json::parse(rest, nullptr, false);
    if (parsed.is_discarded() || rest.size() > 1 << 16) return 0;
    if (rest.find("ByteLevel") != rest.npos) give_bytes(parsed, Bytes::kAlphabet);
    if (rest.find("byte_fallback") != rest.npos) give_bytes(parsed, Bytes::kFallback);
    const auto made = tokenizer_from_json(parsed, parsed, "fuzz");
    if (!made) return made.error().empty() ? __builtin_trap(), 0 : 0;
    use(*made, "Hello  world, aaaa\n\n<s> 12345 caf\xC3\xA9 \xE3\x80\x80 \xF0\x9F\xA6\x99 \xFF\xC3 's 'LL \r\n");
    return 0;
}
