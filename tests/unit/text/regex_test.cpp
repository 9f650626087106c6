#include "text/regex.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <gmock/gmock.h>
#include <pcre2.h>
#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include <functional>

#include "text/characters.hpp"

namespace patchbay::text::regex_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> found(const std::string& pattern, const std::string& text) {
    const auto regex = Regex::compile(pattern);
    if (!regex) return {"refused: " + regex.error()};
    std::vector<Span> spans;
    regex->find_all(text, regex->scratch(), spans);
    std::vector<std::string> out;
    for (const Span s : spans) out.push_back(text.substr(s.begin, s.end - s.begin));
    return out;
}

TEST(Regex, finds_matches_of_every_length_at_every_place) { // words are searched in short windows first
    std::string text;
    std::vector<std::string> words, gaps;
    for (size_t length = 1; length < 400; length += 1 + length / 9) {
        words.push_back(std::string(length, 'a') + "\u00e9");
        gaps.emplace_back(length, ' ');
        text += words.back() + gaps.back();
    }
    EXPECT_EQ(found("\\p{L}+", text), words);
    EXPECT_EQ(found(" +", text), gaps);
    EXPECT_EQ(found("a(?=\u00e9)", text).size(), words.size());
    EXPECT_EQ(found("(?<=\u00e9) ", text).size(), words.size());
    EXPECT_EQ(found("\\p{L}+$", text + "b").back(), "b");
    EXPECT_THAT(found("b", std::string(10'000, 'a') + "b" + std::string(1000, 'a') + "b"), ElementsAre("b", "b"));
}

TEST(Regex, looks_ahead_over_the_end_of_its_window) {
    for (size_t before = 250; before < 262; ++before) {
        const std::string text = std::string(before, 'x') + "   y";
        EXPECT_THAT(found("x+|\\s+(?!\\S)|\\s+|y", text), ElementsAre(std::string(before, 'x'), "  ", " ", "y"));
    }
}

TEST(Regex, finds_empty_matches_once) {
    EXPECT_EQ(found("x*", "axb").size(), 3u);
    EXPECT_EQ(found("(?=b)", std::string(600, 'a') + "b").size(), 1u);
}

TEST(Regex, ends_a_search_that_costs_too_much) { // of these each would take hours
    const std::string text(300'000, 'a');
    for (const char* pattern : {"(?:a+)+[bc]", "(a|a)*c|.", "(?:a+a+)+[bc]|a", "(?:a+[bc])?a", "a+a+a+[bc]",
                                "(?:a?){25}b|.", "(?:a|aa)+[bc]|a", "(?:.*?,){11}b", "(?=(a+))\\1[bc]"}) {
        const auto spans = found(pattern, text);
        ASSERT_FALSE(!spans.empty() && spans[0].starts_with("refused")) << spans[0];
        size_t bytes = 0;
        for (const std::string& each : spans) bytes += each.size();
        EXPECT_LE(bytes, text.size()) << pattern;
    }
}

TEST(Regex, refuses_what_would_count_for_itself) {
    EXPECT_THAT(found("a(?C1)b", "ab"), ElementsAre(HasSubstr("a callout (?C…) is not supported")));
    EXPECT_THAT(found(std::string(20'000, 'a'), "a"), ElementsAre(HasSubstr("is longer than 16384")));
}

// The characters that PCRE2's version of Unicode has: in a later one, which ICU may know, others have properties.
std::vector<char32_t> characters_of_both() {
    char text[64] = {};
    pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, text);
    UVersionInfo known = {}, age = {};
    u_versionFromString(known, text);
    std::vector<char32_t> out;
    for (UChar32 c = 0; c <= 0x10FFFF; ++c) {
        u_charAge(c, age);
        const bool assigned = age[0] > 0 && std::pair(age[0], age[1]) <= std::pair(known[0], known[1]);
        if (assigned && !U_IS_SURROGATE(c)) out.push_back(static_cast<char32_t>(c));
    }
    return out;
}

void expect_class(const std::string& pattern, const std::function<bool(UChar32)>& is_one) {
    static const std::vector<char32_t> all = characters_of_both();
    static const std::string text = [] {
        std::string out;
        for (const char32_t c : all) append_character(out, c);
        return out;
    }();
    const auto regex = Regex::compile(pattern);
    ASSERT_TRUE(regex) << regex.error();
    std::vector<Span> spans;
    regex->find_all(text, regex->scratch(), spans);
    size_t next = 0, differ = 0;
    std::string first;
    for (size_t at = 0, i = 0; at < text.size(); ++i) {
        const size_t begin = at;
        next_character(text, at);
        while (next < spans.size() && spans[next].end <= begin) ++next;
        const bool found = next < spans.size() && spans[next].begin <= begin;
        if (found == is_one(static_cast<UChar32>(all[i]))) continue;
        if (differ++ == 0) first = text.substr(begin, at - begin);
    }
    EXPECT_EQ(differ, 0u) << "of " << all.size() << " characters, '" << first << "' the first: " << pattern;
}

TEST(Regex, reads_scripts_as_those_of_the_characters_themselves) { // not as the scripts that use them: Han has no 。
    size_t scripts = 0;
    for (int32_t value = 0; value <= u_getIntPropertyMaxValue(UCHAR_SCRIPT); ++value) {
        const char* const name = u_getPropertyValueName(UCHAR_SCRIPT, value, U_LONG_PROPERTY_NAME);
        if (!name || !Regex::compile("\\p{" + std::string(name) + "}")) continue; // newer than PCRE2, or no script
        ++scripts;
        expect_class("\\p{" + std::string(name) + "}+",
                     [&](UChar32 c) { return u_getIntPropertyValue(c, UCHAR_SCRIPT) == value; });
    }
    EXPECT_GT(scripts, 150u);
    const auto is_han = [](UChar32 c) { return u_getIntPropertyValue(c, UCHAR_SCRIPT) == USCRIPT_HAN; };
    expect_class("\\p{hani}+", is_han);
    expect_class("[\\p{Han}]+", is_han);
    expect_class("[^\\p{^ Han}\\p{N}]+", [&](UChar32 c) { return is_han(c) && !(U_GET_GC_MASK(c) & U_GC_N_MASK); });
    expect_class("\\P{Han}+", [&](UChar32 c) { return !is_han(c); });
    expect_class("\\p{^Han}+", [&](UChar32 c) { return !is_han(c); });
    EXPECT_THAT(found("\\p{Han}+", "他走了。再见、"), ElementsAre("他走了", "再见"));
}

// As Hugging Face tokenizers 0.23 (Oniguruma) was seen to match each character, alone and in a class.
TEST(Regex, reads_word_characters_as_oniguruma_alone_and_in_a_class) {
    const auto in_class = [](UChar32 c) {
        constexpr uint32_t kKinds = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
        return u_isUAlphabetic(c) || (U_GET_GC_MASK(c) & kKinds) != 0;
    };
    const auto alone = [&](UChar32 c) {
        return in_class(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || (c >= 0xBC && c <= 0xBE);
    };
    expect_class("\\w+", alone);
    expect_class("\\W+", [&](UChar32 c) { return !alone(c); });
    expect_class("[\\w]+", in_class);
    expect_class("[^\\w]+", [&](UChar32 c) { return !in_class(c); });
    EXPECT_THAT(found("\\w+", "x² + 1½"), ElementsAre("x²", "1½"));
}

}  // namespace
}  // namespace patchbay::text::regex_test
