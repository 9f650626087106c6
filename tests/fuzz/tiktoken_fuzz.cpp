// Rank files, by the first byte as Kimi's or as cl100k_base, and text by what is accepted.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/utf8.hpp"
#include "text/tiktoken.hpp"

namespace {

using namespace patchbay::text;
using nlohmann::json;

void use(const Tokenizer& tokenizer, std::string_view text) {
    const auto ids = tokenizer.encode(text);
    for (const TokenId id : ids)
        if (id < 0 || static_cast<uint32_t>(id) >= tokenizer.vocab_size()) __builtin_trap();
    const std::string back = tokenizer.decode(ids);
    if (patchbay::valid_prefix(back) != back.size()) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0 || size > 1 << 14) return 0;
    const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
    const auto parsed = parse_tiktoken(rest);
    if (!parsed) return parsed.error().empty() ? __builtin_trap(), 0 : 0;
    if (parsed->size() > 1 << 16) return 0; // a table of ids, most of them empty
    const json kimi{{"tokenizer_class", "TikTokenTokenizer"}};
    const char* const name = data[0] % 2 ? "cl100k_base.tiktoken" : "tokenizer.model";
    const auto made = tiktoken_tokenizer(rest, kimi, name, "fuzz");
    if (!made) return made.error().empty() ? __builtin_trap(), 0 : 0;
    use(**made, "Hello  world, aaaa\n\n<s> 12345 caf\xC3\xA9 \xE3\x80\x80 \xF0\x9F\xA6\x99 \xFF\xC3 's 'LL \r\n");
    return 0;
}
