#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/utf8.hpp"
#include "text/detokenizer.hpp"
#include "text/utf8.hpp"
#include "unit/text/byte_tokenizer_fixture.hpp"
#include "unit/text/spaced_words.hpp"

namespace patchbay::text::detokenizer_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;

const std::string kReplacement = "\uFFFD";

std::vector<std::string> deltas(const std::shared_ptr<const Tokenizer>& tokenizer, const std::vector<TokenId>& ids) {
    Detokenizer detokenizer(tokenizer);
    std::vector<std::string> out;
    for (const TokenId id : ids) out.push_back(detokenizer.add(id));
    out.push_back(detokenizer.finish());
    return out;
}

TEST(Detokenizer, holds_a_character_back_until_it_is_whole) {
    const auto t = built(byte_tokenizer());
    EXPECT_THAT(deltas(t, {'a', 0xF0, 0x9F, 0xA6, 0x99, 'b'}), ElementsAre("a", "", "", "", "\U0001F999", "b", ""));
}

TEST(Detokenizer, replaces_what_never_becomes_a_character) {
    const auto t = built(byte_tokenizer());
    EXPECT_THAT(deltas(t, {0xE2, 0x82}), ElementsAre("", "", kReplacement));
    EXPECT_THAT(deltas(t, {0xE2, 'a'}), ElementsAre("", kReplacement + "a", ""));
    EXPECT_THAT(deltas(t, {0xC0, 0x80}), ElementsAre(kReplacement, kReplacement, ""));
}

TEST(Detokenizer, passes_over_special_tokens_in_the_middle_of_a_character) {
    const auto t = built(with_added(byte_tokenizer(), {{{"id", 300}, {"content", "<s>"}, {"special", true}}}));
    EXPECT_THAT(deltas(t, {300, 0xC3, 300, 0xA9}), ElementsAre("", "", "", "\u00e9", ""));
}

std::string continued(const std::shared_ptr<const Tokenizer>& tokenizer, const std::vector<TokenId>& before,
                      const std::vector<TokenId>& ids) {
    Detokenizer detokenizer(tokenizer, before);
    std::string out;
    for (const TokenId id : ids) out += detokenizer.add(id);
    return out + detokenizer.finish();
}

TEST(Detokenizer, keeps_the_space_before_a_word_that_continues_a_text) {
    const auto t = built(json::parse(kSpacedWords));
    EXPECT_EQ(continued(t, {kBegin, kOnce, kUpon, kA}, {kSpaceTime, kTime}), " timetime");
    EXPECT_EQ(continued(t, {kBegin}, {kSpaceTime}), "time");
    EXPECT_EQ(continued(t, {}, {kSpaceTime}), "time");
    EXPECT_EQ(continued(t, {kOnce, kBegin, kBegin}, {kSpaceTime}), " time");
    EXPECT_FALSE(Detokenizer(t, std::vector<TokenId>{kBegin}).continues_text());
    EXPECT_TRUE(Detokenizer(t, std::vector<TokenId>{kOnce}).continues_text());
}

TEST(Detokenizer, completes_a_character_that_began_before) {
    const auto t = built(byte_tokenizer());
    EXPECT_EQ(continued(t, {'x', 0xE2, 0x82}, {0xAC, 'b'}), "\u20acb");
    EXPECT_EQ(continued(t, {'x', 0xE2, 0x82}, {'b'}), "b") << "U+FFFD belongs to the text before";
    EXPECT_EQ(continued(t, {'x', 0xE2, 0x82}, {}), "");
    EXPECT_EQ(continued(t, {'x', 0xEF, 0xBD}, {0x9E}), "\uff5e") << "its bytes begin as those of U+FFFD";
}

TEST(Detokenizer, says_piece_by_piece_what_decode_says_at_once) {
    const auto t = built(byte_tokenizer());
    std::mt19937 random(11);
    const int kInteresting[] = {0x41, 0x80, 0xBF, 0xC2, 0xE0, 0xA0, 0xED, 0x9F,
                                0xEF, 0xF0, 0x90, 0xF4, 0x8F, 0xF5, 0xFF};
    for (int round = 0; round < 2000; ++round) {
        std::vector<TokenId> ids;
        for (int i = 0; i < 12; ++i)
            ids.push_back(round % 2 ? kInteresting[random() % std::size(kInteresting)]
                                    : static_cast<int>(random() % 256));
        std::string joined;
        for (const std::string& delta : deltas(t, ids)) {
            EXPECT_EQ(valid_prefix(delta), delta.size());
            joined += delta;
        }
        EXPECT_EQ(joined, t->decode(ids));
    }
}

TEST(Utf8, replaces_maximal_subparts_as_the_unicode_standard_shows) { // table 3-8 and its neighbours
    const auto repaired = [](std::string bytes) {
        std::string out;
        drain_utf8(bytes, out, Rest::kReplace);
        return out;
    };
    const std::string& r = kReplacement;
    EXPECT_EQ(repaired("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), r + r + r + r + r + r + r + r + "A");
    EXPECT_EQ(repaired("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), r + r + r + r + r + r + r + r + "A");
    EXPECT_EQ(repaired("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), r + r + r + r + r + "A" + r + r + "B");
    EXPECT_EQ(repaired("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
}

}  // namespace
}  // namespace patchbay::text::detokenizer_test
