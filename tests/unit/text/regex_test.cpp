#include "text/regex.hpp"

#include <gmock/gmock.h>

namespace patchbay::text {
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

}  // namespace
}  // namespace patchbay::text
