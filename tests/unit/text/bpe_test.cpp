#include "text/bpe.hpp"

#include <gmock/gmock.h>

#include <random>

#include "text/byte_alphabet.hpp"
#include "unit/text/byte_tokenizer_fixture.hpp"

namespace patchbay::text::bpe_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The definition, slow: while neighbours merge, the leftmost pair of the lowest rank does.
std::vector<std::string> merged(const std::string& word, const Merges& merges) {
    std::vector<std::string> out;
    for (const char c : word) out.push_back(spell_byte(static_cast<unsigned char>(c)));
    for (;;) {
        size_t best = merges.size(), at = 0;
        for (size_t i = 0; i + 1 < out.size(); ++i)
            for (size_t rank = 0; rank < best; ++rank)
                if (merges[rank] == std::pair(out[i], out[i + 1])) {
                    best = rank;
                    at = i;
                }
        if (best == merges.size()) return out;
        out[at] += out[at + 1];
        out.erase(out.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
}

TEST(Bpe, merges_the_lowest_rank_first_and_the_leftmost_of_equals) {
    const auto t = built(byte_tokenizer({{"b", "c"}, {"a", "b"}, {"a", "a"}}));
    EXPECT_THAT(pieces(*t, "abc"), ElementsAre("a", "bc"));
    EXPECT_THAT(pieces(*t, "aaa"), ElementsAre("aa", "a"));
}

TEST(Bpe, follows_the_definition_on_random_words_of_every_length) {
    std::mt19937 random(7);
    const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
    for (int round = 0; round < 60; ++round) {
        std::vector<std::string> tokens{"a", "b", "c"};
        Merges merges;
        for (int i = 0; i < 12; ++i) {
            const std::pair pair(tokens[pick(tokens.size())], tokens[pick(tokens.size())]);
            const bool known = std::find(merges.begin(), merges.end(), pair) != merges.end();
            if (known) continue;
            merges.push_back(pair);
            tokens.push_back(pair.first + pair.second);
        }
        const auto t = built(byte_tokenizer(merges));
        for (const size_t length : {size_t{1}, size_t{2}, size_t{5}, size_t{31}, size_t{32}, size_t{33}, size_t{100}}) {
            std::string word;
            for (size_t i = 0; i < length; ++i) word += "abc"[pick(3)];
            EXPECT_EQ(pieces(*t, word), merged(word, merges)) << word;
        }
    }
}

TEST(Bpe, takes_a_word_without_spaces_of_a_million_bytes) {
    Merges merges{{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}};
    const auto t = built(byte_tokenizer(merges));
    const std::string word(1 << 20, 'a');
    const auto ids = t->encode(word);
    EXPECT_EQ(ids.size(), word.size() / 8);
    EXPECT_EQ(t->decode(ids), word);
}

TEST(Bpe, reads_merges_written_as_pairs_like_merges_written_as_text) {
    auto json = byte_tokenizer({{"Ġ", "a"}, {"Ġa", "b"}});
    json["model"]["merges"] =
        nlohmann::json::array({nlohmann::json::array({"Ġ", "a"}), nlohmann::json::array({"Ġa", "b"})});
    EXPECT_THAT(pieces(*built(json), " ab"), ElementsAre(" ab"));
}

TEST(Bpe, with_ignore_merges_takes_a_word_that_is_a_token_as_it_is) {
    auto json = byte_tokenizer({{"a", "b"}});
    json["model"]["vocab"]["abc"] = 300; // no merge leads to it
    EXPECT_THAT(pieces(*built(json), "abc"), ElementsAre("ab", "c"));
    json["model"]["ignore_merges"] = true;
    EXPECT_THAT(pieces(*built(json), "abc abc"), ElementsAre("abc", " ", "ab", "c"));
}

// As Hugging Face tokenizers 0.23 does; its own words on such vocabularies are in fixtures/byte_gaps*.json.
TEST(Bpe, needs_a_byte_that_the_vocabulary_lacks_only_for_a_text_that_has_it) {
    auto json = byte_tokenizer({{"a", "c"}});
    json["model"]["vocab"].erase("b");
    EXPECT_THAT(pieces(*built(json), "a cab ac"), ElementsAre("a", " ", "c", "a", " ", "ac"));
    EXPECT_THAT(pieces(*built(json), "abbc"), ElementsAre("ac")) << "left out: its neighbours are neighbours";
    json["model"]["vocab"]["<unk>"] = 98;
    json["model"]["unk_token"] = "<unk>";
    EXPECT_THAT(built(json)->encode("abbc"), ElementsAre('a', 98, 98, 'c'));
    json["model"]["fuse_unk"] = true;
    EXPECT_THAT(built(json)->encode("abbcb"), ElementsAre('a', 98, 'c', 98));
}

TEST(Bpe, refuses_merges_of_unknown_tokens_and_vocabularies_without_any_byte) {
    auto json = byte_tokenizer();
    json["model"]["merges"] = {"a zz"};
    EXPECT_THAT(refusal(json), HasSubstr("merge 0 ('a' + 'zz'): 'zz' is not in the vocabulary"));
    json = byte_tokenizer();
    json["model"]["vocab"] = {{"<unk>", 0}};
    EXPECT_THAT(refusal(json), HasSubstr("the vocabulary has a token for none of the 256 bytes"));
    json = byte_tokenizer();
    json["model"]["unk_token"] = "<no>";
    EXPECT_EQ(built(json)->encode("a").size(), 1u) << "no byte needs it";
    json["model"]["vocab"].erase("Ġ");
    EXPECT_THAT(refusal(json), HasSubstr("unk_token \"<no>\" is not in the vocabulary"));
    for (const nlohmann::json& bad : {nlohmann::json("ab"), nlohmann::json("a b c"), nlohmann::json(" a"),
                                      nlohmann::json({"a"}), nlohmann::json(3)}) {
        json = byte_tokenizer();
        json["model"]["merges"] = nlohmann::json::array({bad});
        EXPECT_THAT(refusal(json), HasSubstr("not two tokens"));
    }
}

}  // namespace
}  // namespace patchbay::text::bpe_test
