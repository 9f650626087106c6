// Regular expressions: what they generate and refuse agrees with PCRE2; what is not supported is refused by name.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "grammar/code_points.hpp"
#include "grammar/regex.hpp"
#include "patchbay/sdk/philox.hpp"
#include "unit/grammar/grammar_fixture.hpp"

namespace patchbay::grammar::testing::regex_test {
namespace {

class Oracle { // full matches by PCRE2
  public:
    explicit Oracle(const std::string& pattern) {
        int error = 0;
        PCRE2_SIZE at = 0;
        const std::string whole = "\\A(?:" + pattern + ")\\z";
        code_ = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(whole.data()), whole.size(),
                              PCRE2_UTF | PCRE2_DOLLAR_ENDONLY, &error, &at, nullptr);
        EXPECT_NE(code_, nullptr) << pattern;
        match_ = pcre2_match_data_create_from_pattern(code_, nullptr);
    }
    ~Oracle() {
        pcre2_match_data_free(match_);
        pcre2_code_free(code_);
    }
    Oracle(const Oracle&) = delete;
    bool matches(const std::string& text) const { // false also for what is not UTF-8
        return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0, match_, nullptr) > 0;
    }

  private:
    pcre2_code* code_;
    pcre2_match_data* match_;
};

const std::vector<std::string> kPatterns = {
    "abc",
    "a|bc|",
    "(a|b)*abb",
    "[a-c]{2,4}x?",
    R"(\d{3}-\d{4})",
    R"((\+?\d{1,3} )?\(?\d+\)?)",
    R"(\w+@\w+\.(com|org|de))",
    R"([^aeiou\s]+)",
    R"(.{3})",
    R"(é+|[α-ω]{1,3}|日.)",
    R"(\x41\u{1F600}?[\x{61}-\x{63}])",
    R"((?:x(?<name>y|z))*?w)",
    R"(^start(ed)?$)",
    R"([-a]+[b-]|[]]|[\]\-^])",
    R"(\S+\s\S+)",
    R"((a?){5}a{5})",
    R"((0|1(01*0)*1)*)",
    R"(\D\W|\n\t?)",
    R"([\w.]+[^\W_])",
    R"((((a*)*)*)*b)",
};

std::string oracle_pattern(std::string pattern) { // \u{…} is \x{…} there, a ']' first in a class is not empty in either
    for (size_t at; (at = pattern.find("\\u{")) != pattern.npos;) pattern[at + 1] = 'x';
    return pattern;
}

TEST(Regexes, GenerateOnlyWhatPcreMatches) {
    size_t complete = 0;
    for (const std::string& pattern : kPatterns) {
        if (pattern.find("[]]") != pattern.npos) continue; // refused
        const Oracle oracle(oracle_pattern(pattern));
        const auto grammar = compiled(regex(pattern), small());
        ASSERT_TRUE(grammar) << pattern;
        for (uint64_t seed = 0; seed < 100; ++seed) {
            const Drawn drawn = draw(grammar, seed, 40);
            if (!drawn.complete) continue;
            complete += 1;
            EXPECT_TRUE(oracle.matches(drawn.text)) << pattern << " made '" << drawn.text << "'";
        }
    }
    EXPECT_GT(complete, kPatterns.size() * 90);
}

// Texts near those that match: the same answer, both ways.
TEST(Regexes, AgreeWithPcreOnTextsWithAnErrorOrTwo) {
    size_t matches = 0, others = 0;
    const std::string letters = "abcdexyzABw01289 -+.@_]^()\n\tstrom\xC3\xA9";
    for (const std::string& pattern : kPatterns) {
        if (pattern.find("[]]") != pattern.npos) continue;
        const Oracle oracle(oracle_pattern(pattern));
        const auto grammar = compiled(regex(pattern));
        ASSERT_TRUE(grammar) << pattern;
        for (uint64_t seed = 0; seed < 300; ++seed) {
            std::string text = draw(grammar, seed, 12).text;
            for (uint64_t k = 0; k < seed % 3; ++k) {
                const auto bits = patchbay::draw(seed, k, Stream::kSample, 1);
                const char letter = letters[bits[0] % letters.size()];
                const size_t at = bits[1] % (text.size() + 1);
                if (bits[2] % 3 == 0)
                    text.insert(text.begin() + static_cast<std::ptrdiff_t>(at), letter);
                else if (at < text.size() && bits[2] % 3 == 1)
                    text.erase(at, 1);
                else if (at < text.size())
                    text[at] = letter;
            }
            const bool expected = oracle.matches(text);
            EXPECT_EQ(accepts(grammar, text), expected) << pattern << " on '" << text << "'";
            (expected ? matches : others) += 1;
        }
    }
    EXPECT_GT(matches, 1000u);
    EXPECT_GT(others, 1000u);
}

TEST(Regexes, RefuseByNameWhatTheyDoNotSupport) {
    const std::vector<std::pair<std::string, std::string>> refused = {
        {"a(?=b)", "lookahead"},
        {"a(?!b)", "lookahead"},
        {"(?<=a)b", "lookbehind"},
        {R"((a)\1)", "backreference"},
        {R"(\bword)", "'\\b' is not supported"},
        {R"(\p{Nonsense})", "no property of Unicode: 'Nonsense'"},
        {R"(\p{L)", "without its '}'"},
        {R"(\c1)", "without a letter"},
        {"(?i)a", "'(?i'"},
        {"a*+", "possessive"},
        {"a**", "quantifier after a quantifier"},
        {"*a", "nothing in front"},
        {"(a", "without its ')'"},
        {"a)", "')' without"},
        {"[a", "without its ']'"},
        {"[]]", "empty class"},
        {"[[:alpha:]]", "POSIX"},
        {"[z-a]", "ends before it begins"},
        {"a{2,1}", "ends before it begins"},
        {"a{99999}", "repetition"},
        {"a^b", "'^' elsewhere"},
        {"(a$)b", "'$' elsewhere"},
        {"a\xFF", "not UTF-8"},
        {"\\", "nothing after it"},
        {R"(\ud800)", "not a character"},
        {"[^\\s\\S]", "nothing matches"},
        {std::string(200, '(') + std::string(200, ')'), "nested groups"},
        {std::string(100'000, 'a'), "expected at most"},
        {"((a{1000}){1000}){1000}b{2}(c{900}d{900}){20000}", ""}, // by rules that call rules: small
        {"(a{900}|b{900}c){900}.{20000}", ""},
    };
    for (const auto& [pattern, why] : refused) {
        const std::string text = refusal(regex(pattern));
        EXPECT_NE(text.find(why), text.npos) << pattern.substr(0, 60) << ": " << text;
        EXPECT_EQ(text.empty(), why.empty()) << pattern.substr(0, 60) << ": " << text;
    }
}

TEST(Regexes, ReadPropertiesOfUnicodeAndControlCharacters) {
    EXPECT_TRUE(accepts(regex(R"(\p{L}+\pN)"), "aé日9"));
    EXPECT_TRUE(accepts(regex(R"(\p{Letter}\p{Script=Greek})"), "aλ"));
    EXPECT_FALSE(accepts(regex(R"(\p{L})"), "1"));
    EXPECT_FALSE(accepts(regex(R"(\p{Greek})"), "a"));
    EXPECT_TRUE(accepts(regex(R"(\P{L}[^\p{N}a])"), "1b"));
    EXPECT_FALSE(accepts(regex(R"([^\p{N}a])"), "a"));
    EXPECT_TRUE(accepts(regex(R"(\p{^L})"), "1"));
    EXPECT_FALSE(accepts(regex(R"(\P{L})"), "\xF0\xBA\xBF\xBF")); // U+3AFFF, which is not assigned: it may become one
    EXPECT_FALSE(accepts(regex(R"([^\p{L}])"), "\xF0\xBA\xBF\xBF"));
    EXPECT_TRUE(accepts(regex(R"(\ca\cZ)"), "\x01\x1A"));
}

TEST(Regexes, ReadSurrogatePairsAsOneCharacter) {
    for (const char* pattern : {R"(\uD83D\uDE00)", R"([\ud83d\ude00])", R"([\uD83D\uDDFF-\uD83D\uDE01])"})
        EXPECT_TRUE(accepts(regex(pattern), "\xF0\x9F\x98\x80")) << pattern; // U+1F600
    for (const char* pattern : {R"(\uD83D\u0041)", R"(\uD83DA)", R"(\uDE00\uD83D)", R"(\uD83D\uD83D)", R"(\uD83D\uD)"})
        EXPECT_NE(refusal(regex(pattern)).find("not a character"), std::string::npos) << pattern;
}

TEST(Regexes, ArePaidForByTheirCharactersAndTheRangesOfTheirClasses) {
    const auto fits = [](const std::string& pattern, uint64_t steps) {
        Rules rules;
        Work work(steps);
        return static_cast<bool>(parse_regex(rules, pattern, plain_regex(), work));
    };
    EXPECT_FALSE(fits("^" + std::string(5000, 'a'), 5000));
    EXPECT_TRUE(fits("^" + std::string(5000, 'a'), 11'000));
    EXPECT_FALSE(fits(R"(\p{L})", 1500)); // which has some 600 ranges
    EXPECT_TRUE(fits(R"(\p{L})", 3000));
    std::string all, classes;
    for (int i = 0; i < 16'000; ++i) all += R"(\pL)", classes += R"(\s\S)";
    EXPECT_NE(refusal(regex("[" + all + "]")).find("steps to compile"), std::string::npos);
    EXPECT_FALSE(fits("[" + classes.substr(0, 60'000) + "]", 70'000));
}

TEST(Utf8Ranges, SpellEveryCharacterOfASetAndNoOther) {
    const CodePoints set = CodePoints::of({{0x7E, 0x81}, {0x7FF, 0x801}, {0xD7FF, 0xE001}, {0xFFFE, 0x10001}});
    const auto ranges = utf8_ranges(set);
    const auto spelled = [&](const std::string& bytes) {
        return std::any_of(ranges.begin(), ranges.end(), [&](const ByteRanges& r) {
            if (r.size() != bytes.size()) return false;
            for (size_t i = 0; i < r.size(); ++i)
                if (static_cast<uint8_t>(bytes[i]) < r[i].low || static_cast<uint8_t>(bytes[i]) > r[i].high)
                    return false;
            return true;
        });
    };
    for (uint32_t c = 0; c <= CodePoints::kLast; ++c) {
        const bool surrogate = c >= 0xD800 && c < 0xE000;
        if (surrogate) continue;
        ASSERT_EQ(spelled(utf8(c)), set.contains(c)) << c;
    }
    EXPECT_FALSE(spelled("\xED\xA0\x80")); // a surrogate
}

}  // namespace
}  // namespace patchbay::grammar::testing::regex_test
