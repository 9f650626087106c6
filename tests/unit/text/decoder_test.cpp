#include "text/decoder.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace patchbay::text::decoder_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

json sequence(const std::vector<json>& parts) { return {{"type", "Sequence"}, {"decoders", parts}}; }
json replace(const std::string& from, const std::string& to) {
    return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}
json strip(const std::string& character, int start, int stop) {
    return {{"type", "Strip"}, {"content", character}, {"start", start}, {"stop", stop}};
}
const json kFuse = {{"type", "Fuse"}}, kByteFallback = {{"type", "ByteFallback"}};

// The text after each token, and what the end adds.
std::vector<std::string> deltas(const json& part, const std::vector<std::string>& tokens) {
    const auto decoder = Decoder::from_json(part, false);
    if (!decoder) return {"refused: " + decoder.error()};
    DecodeState state;
    std::vector<std::string> out;
    for (const std::string& token : tokens)
        decoder->next(state, token, decoder->token_bytes(token, Decoder::Place::kLater), out.emplace_back());
    decoder->rest(state, out.emplace_back());
    return out;
}

std::string refusal(const json& part) {
    const auto made = Decoder::from_json(part, false);
    return made ? "(was accepted)" : made.error();
}

TEST(Decoder, joins_bytes_to_characters_as_they_become_whole) {
    EXPECT_THAT(deltas(kByteFallback, {"a", "<0xC3>", "<0xa9>", "b", "<0xE2>", "<0x82>", "c", "<0xFF>"}),
                ElementsAre("a", "", "\u00e9", "b", "", "", "\uFFFDc", "\uFFFD", ""));
    EXPECT_THAT(deltas(kByteFallback, {"<0xG1>", "<0x411>", "<0x41"}), ElementsAre("<0xG1>", "<0x411>", "<0x41", ""));
}

TEST(Decoder, drops_the_space_that_metaspace_put_in_front) {
    const json metaspace = {{"type", "Metaspace"}, {"replacement", "_"}};
    EXPECT_THAT(deltas(metaspace, {"_a_b", "_c", "d"}), ElementsAre("ab", " c", "d", ""));
    json never = metaspace;
    never["prepend_scheme"] = "never";
    EXPECT_THAT(deltas(never, {"_a", "_b"}), ElementsAre(" a", " b", ""));
    never["prepend_scheme"] = "sometimes";
    EXPECT_THAT(refusal(never), HasSubstr("prepend_scheme \"sometimes\" is not supported (supported: always, first"));
    EXPECT_THAT(refusal({{"type", "Metaspace"}, {"replacement", "__"}}), HasSubstr("\"__\" is not one character"));
}

TEST(Decoder, puts_spaces_between_tokens_where_the_file_names_no_decoder) {
    EXPECT_THAT(deltas(nullptr, {"a", "b"}), ElementsAre("a", " b", ""));
}

TEST(Decoder, strips_each_token_or_the_whole_text_after_fuse) {
    EXPECT_THAT(deltas(strip("x", 1, 1), {"xxax", "bxx"}), ElementsAre("xa", "bx", ""));
    const json whole = sequence({kFuse, strip("x", 2, 2)});
    EXPECT_THAT(deltas(whole, {"x", "xx", "a", "x", "x", "xb", "xxx"}),
                ElementsAre("", "", "xa", "", "", "xxxb", "x", ""));
    EXPECT_THAT(deltas(whole, {"a", "x", "y"}), ElementsAre("a", "", "xy", ""));
    EXPECT_THAT(deltas(sequence({kFuse, strip("\u00e9", 1, 0)}), {"\u00e9\u00e9"}), ElementsAre("\u00e9", ""));
}

TEST(Decoder, replaces_over_the_borders_of_tokens_after_fuse) {
    const json whole = sequence({kFuse, replace("abc", "-")});
    EXPECT_THAT(deltas(whole, {"xa", "b", "c", "ab", "d", "ab"}), ElementsAre("x", "", "-", "", "abd", "", "ab"));
    EXPECT_THAT(deltas(whole, {"aab", "cabcab"}), ElementsAre("a", "--", "ab"));
    EXPECT_THAT(deltas(sequence({kFuse, replace("aa", "b"), strip("b", 0, 1)}), {"a", "a", "a", "a"}),
                ElementsAre("", "", "", "b", ""));
    EXPECT_THAT(deltas(replace("abc", "-"), {"ab", "c"}), ElementsAre("ab", "c", "")); // before it, in each token
}

TEST(Decoder, streams_what_steps_that_hold_back_say_of_the_whole) {
    const json part = sequence({replace("_", " "), kByteFallback, kFuse, replace("  ", "="), strip(" ", 1, 1)});
    const std::vector<std::string> tokens = {"_", "_", "_a", "<0x20>", "<0xE2>", "_", "<0x82>", "__", "b", "_"};
    std::string joined;
    for (const std::string& delta : deltas(part, tokens)) joined += delta;
    EXPECT_EQ(joined, "= a \uFFFD \uFFFD=b");
}

TEST(Decoder, gives_byte_level_vocabularies_their_bytes) {
    const json byte_level = {{"type", "ByteLevel"}};
    EXPECT_THAT(deltas(sequence({byte_level, kFuse, strip(" ", 1, 0)}), {"Ġa", "Ã", "©", "日"}),
                ElementsAre("a", "", "\u00e9", "日", ""));
}

TEST(Decoder, refuses_by_name_what_it_does_not_do) {
    EXPECT_THAT(refusal({{"type", "CTC"}}),
                HasSubstr("type 'CTC' is not supported (supported: BPEDecoder, ByteFallback, ByteLevel"));
    EXPECT_THAT(refusal(sequence({kFuse, kByteFallback})), HasSubstr("ByteFallback after Fuse or ByteLevel"));
    json regex = replace("a", "b");
    regex["pattern"] = {{"Regex", "a"}};
    EXPECT_THAT(refusal(regex), HasSubstr("Replace with a 'Regex' is not supported in a decoder"));
    EXPECT_THAT(refusal(replace("", "b")), HasSubstr("an empty 'String' is not supported"));
    EXPECT_THAT(refusal(replace("a", std::string(100, 'b'))), HasSubstr("longer than 64 bytes"));
    EXPECT_THAT(refusal(strip("ab", 1, 0)), HasSubstr("\"ab\" is not one character"));
    EXPECT_THAT(refusal(strip("a", -1, 0)), HasSubstr("'start' is -1, not a count"));
    EXPECT_THAT(refusal(sequence(std::vector<json>(70, strip("a", 1, 0)))), HasSubstr("more than 64 steps"));
}

}  // namespace
}  // namespace patchbay::text::decoder_test
