// Two ways in, by the first byte. Even: the rest is a tokenizer.model; what is accepted must survive hard texts and be
// small enough to be made fast. Odd: the rest is a charsmap, which must be refused or find only what is there.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/utf8.hpp"
#include "text/charsmap.hpp"
#include "text/detokenizer.hpp"
#include "text/sentencepiece_tokenizer.hpp"

namespace {

using namespace patchbay::text;

constexpr std::string_view kText =
    "Hello  world, aaaa\n\n<s> 12345 caf\xC3\xA9 \xE3\x80\x80 \xF0\x9F\xA6\x99 \xFF\xC3 \xE2\x96\x81 's \r\n e\xCC\x81 "
    "fi ";

void use(const std::shared_ptr<const Tokenizer>& tokenizer) {
    const auto ids = tokenizer->encode(kText);
    Detokenizer detokenizer(tokenizer);
    std::string joined;
    for (const TokenId id : ids) {
        if (id < 0 || static_cast<uint32_t>(id) >= tokenizer->vocab_size()) __builtin_trap();
        joined += detokenizer.add(id);
    }
    joined += detokenizer.finish();
    if (patchbay::valid_prefix(joined) != joined.size() || joined != tokenizer->decode(ids)) __builtin_trap();
}

void use(const Charsmap& map) {
    const std::string text = "e\xCC\x81 fi caf\xC3\xA9 \xF0\x9F\xA6\x99 abc\r\n";
    std::string out;
    map.apply(text, 4096, out);
    if (patchbay::valid_prefix(out) != out.size()) __builtin_trap();
    for (size_t i = 0; i < text.size(); ++i)
        if (const auto match = map.at(std::string_view(text).substr(i), Charsmap::Prefer::kLongest))
            if (match->length == 0 || match->length > text.size() - i) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
    if (data[0] % 2) {
        if (const auto map = Charsmap::parse(rest)) use(*map);
        return 0;
    }
    const auto model = parse_sentencepiece(rest);
    if (!model) return model.error().empty() ? __builtin_trap(), 0 : 0;
    const auto made = sentencepiece_tokenizer(*model, nlohmann::json::object(), "fuzz");
    if (!made) return made.error().empty() ? __builtin_trap(), 0 : 0;
    use(*made);
    return 0;
}
