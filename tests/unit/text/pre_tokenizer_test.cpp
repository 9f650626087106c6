#include "text/pre_tokenizer.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace patchbay::text::pre_tokenizer_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const json kBytesOnly = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};

json split(const std::string& pattern, const std::string& behavior, bool invert = false) {
    return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", behavior}, {"invert", invert}};
}

json then_bytes(const json& part) { return {{"type", "Sequence"}, {"pretokenizers", {part, kBytesOnly}}}; }

std::vector<std::string> words(const json& pre_tokenizer, const std::string& text) {
    const auto made = PreTokenizer::from_json(pre_tokenizer);
    if (!made) return {"refused: " + made.error()};
    PreTokenizer::Words out;
    made->split(text, TextBegin::kYes, out);
    return {out.words.begin(), out.words.end()};
}

std::string refusal(const json& pre_tokenizer) {
    const auto made = PreTokenizer::from_json(pre_tokenizer);
    return made ? "(was accepted)" : made.error();
}

TEST(PreTokenizer, cuts_like_gpt2_where_byte_level_uses_its_pattern) {
    const json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
    EXPECT_THAT(words(byte_level, "Hello  world, it's 2024!\n"),
                ElementsAre("Hello", " ", " world", ",", " it", "'s", " 2024", "!", "\n"));
    EXPECT_THAT(words(byte_level, "größer 日本語 ½"), ElementsAre("größer", " 日本語", " ½"));
    EXPECT_THAT(words(byte_level, ""), IsEmpty());
}

TEST(PreTokenizer, puts_a_space_in_front_only_where_there_is_none) {
    const json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", true}};
    EXPECT_THAT(words(byte_level, "a b"), ElementsAre(" a", " b"));
    EXPECT_THAT(words(byte_level, " a"), ElementsAre(" a"));
}

TEST(PreTokenizer, splits_with_every_behavior) {
    EXPECT_THAT(words(then_bytes(split("-", "Isolated")), "a--b-"), ElementsAre("a", "-", "-", "b", "-"));
    EXPECT_THAT(words(then_bytes(split("-", "Removed")), "a--b-"), ElementsAre("a", "b"));
    EXPECT_THAT(words(then_bytes(split("-", "MergedWithPrevious")), "a--b-"), ElementsAre("a-", "-", "b-"));
    EXPECT_THAT(words(then_bytes(split("-", "MergedWithNext")), "a--b-"), ElementsAre("a", "-", "-b", "-"));
    EXPECT_THAT(words(then_bytes(split("-", "Contiguous")), "a--b-"), ElementsAre("a", "--", "b", "-"));
}

TEST(PreTokenizer, inverts_what_counts_as_a_match) {
    EXPECT_THAT(words(then_bytes(split("[a-z]+", "Removed", true)), "ab, cd"), ElementsAre("ab", "cd"));
}

TEST(PreTokenizer, takes_a_literal_pattern_literally) {
    const json literal = {{"type", "Split"}, {"pattern", {{"String", "."}}}, {"behavior", "Removed"}};
    EXPECT_THAT(words(then_bytes(literal), "a.b"), ElementsAre("a", "b"));
}

TEST(PreTokenizer, isolates_digits_one_by_one_or_in_runs) {
    EXPECT_THAT(words(then_bytes({{"type", "Digits"}, {"individual_digits", true}}), "a12b"),
                ElementsAre("a", "1", "2", "b"));
    EXPECT_THAT(words(then_bytes({{"type", "Digits"}, {"individual_digits", false}}), "a12b"),
                ElementsAre("a", "12", "b"));
}

TEST(PreTokenizer, runs_a_sequence_part_by_part_each_within_the_words_before) {
    const json parts = {split("[0-9]{1,3}", "Isolated"), split("[a-z]+(?![0-9])", "Isolated"), kBytesOnly};
    EXPECT_THAT(words({{"type", "Sequence"}, {"pretokenizers", parts}}, "abc1234"), ElementsAre("abc", "123", "4"));
}

TEST(PreTokenizer, reads_white_space_and_word_classes_as_unicode_does) {
    // U+180E was white space once and is no more; U+3000 and U+0085 are.
    EXPECT_THAT(words(then_bytes(split("\\s+", "Removed")), "a\u3000\u0085b\u180Ec"), ElementsAre("a", "b\u180Ec"));
    EXPECT_THAT(words(then_bytes(split("[^\\s]+", "Isolated")), "a b"), ElementsAre("a", " ", "b"));
    EXPECT_THAT(words(then_bytes(split("\\w+", "Removed")), "né_9-x"), ElementsAre("-"));
}

TEST(PreTokenizer, cuts_a_million_spaces_and_a_million_letters) {
    const std::string llama3 =
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
        "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
        "\\s+(?!\\S)|\\s+";
    const std::string spaces(1 << 20, ' '), letters(1 << 20, 'x');
    EXPECT_THAT(words(then_bytes(split(llama3, "Isolated")), spaces + "x" + letters),
                ElementsAre(spaces.substr(1), " x" + letters));
}

TEST(PreTokenizer, leaves_the_rest_in_one_piece_where_a_pattern_backtracks_without_end) {
    const std::string text = std::string(5000, 'a') + "b";
    std::string joined;
    for (const std::string& word : words(then_bytes(split("(a|aa|aaa)+$(?!b)c", "Isolated")), text)) joined += word;
    EXPECT_EQ(joined, text);
}

TEST(PreTokenizer, refuses_by_name_what_it_does_not_do) {
    EXPECT_THAT(refusal({{"type", "UnicodeScripts"}}),
                HasSubstr("type 'UnicodeScripts' is not supported (supported: BertPreTokenizer, ByteLevel, Char"));
    EXPECT_THAT(refusal(json::object()), HasSubstr("type '' is not supported"));
    EXPECT_THAT(refusal({{"type", "Sequence"}, {"pretokenizers", {kBytesOnly, {{"type", "Metaspace"}}}}}),
                HasSubstr("Metaspace after ByteLevel is not supported"));
    EXPECT_THAT(refusal({{"type", "Sequence"}}), HasSubstr("no list 'pretokenizers'"));
    EXPECT_THAT(refusal(then_bytes(split("a", "Sideways"))), HasSubstr("behavior \"Sideways\" is not supported"));
    EXPECT_THAT(refusal(then_bytes({{"type", "Split"}, {"behavior", "Isolated"}})), HasSubstr("no 'pattern'"));
    EXPECT_THAT(refusal(then_bytes({{"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Glob", "*"}}}})),
                HasSubstr("neither 'Regex' nor 'String'"));
    EXPECT_THAT(refusal({{"type", "ByteLevel"}, {"use_regex", 1}}),
                HasSubstr("'use_regex' is neither true nor false but 1"));
}

TEST(PreTokenizer, refuses_patterns_that_another_engine_reads_differently) {
    EXPECT_THAT(refusal(then_bytes(split("[\\p{L}&&[^\\p{Nope}]]", "Isolated"))), HasSubstr("unknown property"));
    EXPECT_THAT(refusal(then_bytes(split("[[:letters:]]", "Isolated"))), HasSubstr("the class [:letters:]"));
    EXPECT_THAT(refusal(then_bytes(split("[a&&b", "Isolated"))), HasSubstr("a class that does not close"));
    EXPECT_THAT(refusal(then_bytes(split("[a[bc]", "Isolated"))), HasSubstr("a class that does not close"));
    EXPECT_THAT(refusal(then_bytes(split("\\h+", "Isolated"))), HasSubstr("\\h is not supported"));
    EXPECT_THAT(refusal(then_bytes(split("\\p{N}{1,3}+", "Isolated"))), HasSubstr("possessive"));
    EXPECT_THAT(refusal(then_bytes(split("(?m).+", "Isolated"))), HasSubstr("inline flag"));
    EXPECT_THAT(refusal(then_bytes(split("(*ACCEPT)a", "Isolated"))), HasSubstr("a verb"));
    EXPECT_THAT(refusal(then_bytes(split("(a", "Isolated"))),
                HasSubstr("'(a' does not compile: missing closing parenthesis"));
    EXPECT_EQ(refusal(then_bytes(split("[\\[\\]&]?\\p{L}++", "Isolated"))), "(was accepted)");
}

}  // namespace
}  // namespace patchbay::text::pre_tokenizer_test
