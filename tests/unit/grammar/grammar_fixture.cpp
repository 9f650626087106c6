#include "unit/grammar/grammar_fixture.hpp"

#include <cstdlib>

#include "patchbay/sdk/philox.hpp"
#include "paths.hpp"

namespace patchbay::grammar::testing {

StructuredOutputs json(std::string schema) { return {.json = std::move(schema)}; }
StructuredOutputs regex(std::string pattern) { return {.regex = std::move(pattern)}; }
StructuredOutputs ebnf(std::string text) { return {.grammar = std::move(text)}; }

namespace {

std::vector<std::string> single_bytes() {
    std::vector<std::string> out;
    for (int b = 0; b < 256; ++b) out.emplace_back(1, static_cast<char>(b));
    return out;
}

}  // namespace

std::shared_ptr<const Vocabulary> bytes_only() {
    static const auto vocabulary = std::make_shared<const Vocabulary>(single_bytes());
    return vocabulary;
}

std::shared_ptr<const Vocabulary> small() {
    static const auto vocabulary = [] {
        std::vector<std::string> tokens = single_bytes();
        const std::vector<std::string> ends{"\"", "{", "}", "[", "]", ",", ":", "\n", " ", "\\"};
        for (const auto& a : ends)
            for (const auto& b : ends) tokens.push_back(a + b);
        for (const char* word : {"true",     "false",  "null",  " the", "name", "age",  "and ", "ab",       "abc",
                                 "12",       "123",    "0.",    "-1",   "e+",   "\\u",  "00",   "\": \"",   "\", \"",
                                 "\": ",     "\":",    "{\"",   "\"}",  "\"}]", "\",",  "[[",   "]]",       "}}",
                                 "\n  ",     "\n    ", "é",     "ü",    "\xC3", "\xA9", "日本", "\xE6\x97", "😀",
                                 "\xF0\x9F", "a\"b",   "x\\n",  "(",    "((",   "))",   "+",    "1+1",      "-",
                                 "--",       "19",     "2024-", "-0",   "T1",   ":0",   ".1",   "@",        "a@b",
                                 ".com",     "",       ""})
            tokens.emplace_back(word);
        for (const size_t n : {8, 31, 32, 33, 40, 64, 80}) // beyond what states are alike for
            for (const char* end : {"", "b", "\"", "\\", ", ", "\";", "'"}) tokens.push_back(std::string(n, 'a') + end);
        return std::make_shared<const Vocabulary>(std::move(tokens));
    }();
    return vocabulary;
}

std::optional<std::filesystem::path> real_tokenizer(const std::string& name) {
    const char* given = std::getenv("PATCHBAY_TEST_DATA");
    const auto data =
        given ? std::filesystem::path(given) : std::filesystem::path(kSourceDir) / ".." / "shared" / "data";
    const auto folder = data / "tokenizers" / name;
    if (!std::filesystem::exists(folder)) return std::nullopt;
    return folder;
}

std::shared_ptr<Grammar> compiled(const StructuredOutputs& asked, const std::shared_ptr<const Vocabulary>& vocabulary) {
    auto automaton = compile(asked);
    if (!automaton) {
        ADD_FAILURE() << automaton.error();
        return nullptr;
    }
    return std::make_shared<Grammar>(*std::move(automaton), vocabulary);
}

std::string refusal(const StructuredOutputs& asked) {
    const auto automaton = compile(asked);
    return automaton ? "" : automaton.error();
}

bool accepts(const std::shared_ptr<Grammar>& grammar, std::string_view text) {
    if (!grammar) return false;
    Matcher m(grammar);
    for (const char c : text) {
        const auto advanced = m.advance(static_cast<uint8_t>(c));
        if (!advanced) {
            ADD_FAILURE() << advanced.error();
            return false;
        }
        if (!*advanced) return false;
    }
    return m.complete();
}

bool accepts(const StructuredOutputs& asked, std::string_view text) { return accepts(compiled(asked), text); }

std::vector<uint32_t> brute_force(const Matcher& m, const Vocabulary& v) {
    std::vector<uint32_t> out(v.words());
    for (uint32_t t = 0; t < v.size(); ++t) {
        Matcher copy = m;
        const auto advanced = copy.advance(static_cast<TokenId>(t));
        EXPECT_TRUE(advanced) << advanced.error();
        if (advanced && *advanced) out[t / 32] |= 1u << (t % 32);
    }
    return out;
}

std::vector<uint32_t> allowed(Matcher& m, const Vocabulary& v) {
    std::vector<uint32_t> out(v.words(), 0xDEADBEEF);
    const auto done = m.allow(out);
    EXPECT_TRUE(done) << done.error();
    return out;
}

bool has(const std::vector<uint32_t>& mask, TokenId t) { return mask[static_cast<size_t>(t) / 32] >> (t % 32) & 1; }

std::vector<TokenId> ids_of(const std::vector<uint32_t>& mask) {
    std::vector<TokenId> out;
    for (size_t w = 0; w < mask.size(); ++w)
        for (uint32_t bits = mask[w]; bits; bits &= bits - 1)
            out.push_back(static_cast<TokenId>(w * 32 + static_cast<size_t>(__builtin_ctz(bits))));
    return out;
}

Drawn draw(const std::shared_ptr<Grammar>& grammar, uint64_t seed, size_t max_tokens) {
    const Vocabulary& v = grammar->vocabulary();
    Matcher m(grammar);
    Drawn out{};
    for (size_t n = 0; n < max_tokens; ++n) {
        const auto ids = ids_of(allowed(m, v));
        const PhiloxBlock bits = patchbay::draw(seed, n, Stream::kSample, 0);
        if (m.complete() && (ids.empty() || bits[1] % 4 == 0 || n > max_tokens / 2)) break;
        if (ids.empty()) break;
        TokenId token = ids[bits[0] % ids.size()];
        if (n > max_tokens / 2) { // towards an end: the fewest ways on
            size_t fewest = SIZE_MAX;
            for (size_t k = 0; k < std::min<size_t>(ids.size(), 12); ++k) {
                const TokenId candidate = ids[(bits[0] + k * (ids.size() / 12 + 1)) % ids.size()];
                Matcher copy = m;
                if (const auto fits = copy.advance(candidate); !fits || !*fits) continue; // too ambiguous to follow
                const size_t ways = copy.complete() ? 0 : ids_of(allowed(copy, v)).size();
                if (ways < fewest) fewest = ways, token = candidate;
            }
        }
        const auto advanced = m.advance(token);
        if (!advanced) return out; // likewise: the text ends with an error
        EXPECT_TRUE(*advanced);
        out.tokens.push_back(token);
        out.text += v.bytes(token, n == 0 ? Vocabulary::Place::kFirst : Vocabulary::Place::kLater);
    }
    out.complete = m.complete();
    return out;
}

}  // namespace patchbay::grammar::testing
