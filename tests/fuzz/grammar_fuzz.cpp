// Schemas, regular expressions, grammars and structural tags as strangers write them. By the first byte: what the rest
// is. What compiles is walked: masks are what brute force says, and a text never runs into a dead end.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "grammar/compile.hpp"

namespace {

using namespace patchbay::grammar;

std::shared_ptr<const Vocabulary> vocabulary() {
    static const auto out = [] {
        std::vector<std::string> tokens;
        for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
        for (const char* piece :
             {"{\"", "\"}", "\": ", ", \"", "ab", "aa", "12", "\n  ", "true", "\xC3\xA9", "\xE6\x97"})
            tokens.emplace_back(piece);
        return std::make_shared<const Vocabulary>(std::move(tokens));
    }();
    return out;
}

// The first tokens of a text, each drawn among those that are allowed by a byte of the input.
void walk(const std::shared_ptr<Grammar>& grammar, std::string_view seed) {
    Matcher m(grammar);
    std::vector<uint32_t> mask(vocabulary()->words());
    for (size_t n = 0; n < 12; ++n) {
        if (!m.allow(mask)) return; // too ambiguous
        std::vector<TokenId> allowed;
        for (uint32_t t = 0; t < vocabulary()->size(); ++t) {
            const bool has = mask[t / 32] >> (t % 32) & 1;
            if (has) allowed.push_back(static_cast<TokenId>(t));
            const auto advanced = m.advance(static_cast<TokenId>(t));
            if (!advanced) return;
            if (*advanced != has) __builtin_trap();
            if (*advanced) m.roll_back(1);
        }
        if (allowed.empty() != m.finished()) __builtin_trap(); // single bytes spell everything
        if (allowed.empty()) return;
        const auto byte = static_cast<uint8_t>(seed[(n * 7) % seed.size()]);
        if (!*m.advance(allowed[(byte * 31 + n) % allowed.size()])) __builtin_trap();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 2 || size > 4096) return 0;
    const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
    StructuredOutputs asked;
    switch (data[0]) {
        case 'j': asked.json = rest; break;
        case 'w':
            asked.json = rest;
            asked.disable_any_whitespace = true;
            break;
        case 'r': asked.regex = rest; break;
        case 'g': asked.grammar = rest; break; // GBNF or Lark
        case 't': asked.structural_tag = rest; break;
        default: return 0;
    }
    auto automaton = compile(asked);
    if (!automaton) return automaton.error().empty() ? __builtin_trap(), 0 : 0;
    walk(std::make_shared<Grammar>(*std::move(automaton), vocabulary()), rest);
    return 0;
}
