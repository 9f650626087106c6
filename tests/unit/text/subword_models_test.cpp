// CharacterBpe and Unigram against their definitions, written slowly.
#include <gmock/gmock.h>

#include <map>
#include <random>

#include "unit/text/byte_tokenizer_fixture.hpp"

namespace patchbay::text::subword_models_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Tokens get ids by their place; no normalizer, no pre-tokenizer.
json character_bpe(const std::vector<std::string>& tokens, const Merges& merges) {
    json vocab = json::object(), list = json::array();
    for (const std::string& token : tokens) vocab.emplace(token, vocab.size());
    for (const auto& [left, right] : merges) list.push_back({left, right});
    return {{"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", list}}}};
}

std::vector<std::string> spelled(const Tokenizer& tokenizer, const json& source, const std::string& text) {
    std::vector<std::string> out;
    for (const TokenId id : tokenizer.encode(text))
        for (const auto& [token, value] : source["model"]["vocab"].items())
            if (value == id) out.push_back(token);
    return out;
}

std::vector<std::string> merged(std::vector<std::string> symbols, const Merges& merges) {
    for (;;) {
        size_t best = merges.size(), at = 0;
        for (size_t i = 0; i + 1 < symbols.size(); ++i)
            for (size_t rank = 0; rank < best; ++rank)
                if (merges[rank] == std::pair(symbols[i], symbols[i + 1])) {
                    best = rank;
                    at = i;
                }
        if (best == merges.size()) return symbols;
        symbols[at] += symbols[at + 1];
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
}

TEST(CharacterBpe, follows_the_definition_wherever_its_tokens_have_spaces) {
    std::mt19937 random(17);
    const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
    const std::vector<std::string> letters{"a", "b", "\u2581", "\u00e9"};
    for (int round = 0; round < 200; ++round) {
        std::vector<std::string> tokens = letters;
        Merges merges;
        for (int i = 0; i < 10; ++i) {
            const std::pair pair(tokens[pick(tokens.size())], tokens[pick(tokens.size())]);
            if (std::find(merges.begin(), merges.end(), pair) != merges.end()) continue;
            merges.push_back(pair);
            tokens.push_back(pair.first + pair.second);
        }
        const json source = character_bpe(tokens, merges);
        const auto t = built(source);
        std::vector<std::string> symbols;
        std::string text;
        for (size_t i = 0; i < 5 + pick(60); ++i) {
            symbols.push_back(letters[pick(letters.size())]);
            text += symbols.back();
        }
        EXPECT_EQ(spelled(*t, source, text), merged(symbols, merges)) << text;
    }
}

TEST(CharacterBpe, takes_a_million_letters_and_a_million_words) {
    const json source =
        character_bpe({"a", "\u2581", "aa", "aaaa", "\u2581a"}, {{"a", "a"}, {"aa", "aa"}, {"\u2581", "a"}});
    const auto t = built(source);
    EXPECT_EQ(t->encode(std::string(1 << 20, 'a')).size(), size_t{1} << 18);
    std::string words;
    for (int i = 0; i < 1 << 20; ++i) words += "\u2581a";
    EXPECT_EQ(t->encode(words).size(), size_t{1} << 20);
}

TEST(CharacterBpe, makes_of_unknown_characters_what_the_file_says) {
    json source = character_bpe({"a", "<unk>", "<0xC3>", "<0xA9>"}, {});
    EXPECT_THAT(built(source)->encode("a\u00e9\u00eaa"), ElementsAre(0, 0)); // left out
    source["model"]["unk_token"] = "<unk>";
    EXPECT_THAT(built(source)->encode("a\u00e9\u00eaa"), ElementsAre(0, 1, 1, 0));
    source["model"]["fuse_unk"] = true;
    EXPECT_THAT(built(source)->encode("a\u00e9\u00eaa"), ElementsAre(0, 1, 0));
    source["model"]["byte_fallback"] = true;
    EXPECT_THAT(built(source)->encode("a\u00e9\u00eaa"), ElementsAre(0, 2, 3, 1, 0)); // there is no <0xAA>
    source["model"]["unk_token"] = "<none>";
    EXPECT_THAT(refusal(source), HasSubstr("unk_token \"<none>\" is not in the vocabulary"));
}

TEST(CharacterBpe, reads_ill_formed_text_as_replacement_characters) {
    const auto t = built(character_bpe({"a", "\uFFFD"}, {}));
    EXPECT_THAT(t->encode("a\xF0\x9F\xA6"
                          "a\xFF\xC3"),
                ElementsAre(0, 1, 0, 1, 1));
}

using Scores = std::map<std::string, double>;

// The best of all ways to cut a word; of equal ones any.
double best_sum(const std::string& word, const Scores& scores, double unknown) {
    std::vector<double> best(word.size() + 1, -1e300);
    best[0] = 0;
    for (size_t end = 1; end <= word.size(); ++end)
        for (size_t begin = 0; begin < end; ++begin) {
            const auto at = scores.find(word.substr(begin, end - begin));
            if (at != scores.end()) best[end] = std::max(best[end], best[begin] + at->second);
            if (end == begin + 1 && at == scores.end()) best[end] = std::max(best[end], best[begin] + unknown);
        }
    return best.back();
}

TEST(Unigram, finds_the_way_with_the_highest_sum) {
    std::mt19937 random(23);
    for (int round = 0; round < 200; ++round) {
        Scores scores{{"<unk>", 0.0}, {"a", -3.5}};
        for (int i = 0; i < 12; ++i) {
            std::string piece;
            for (size_t n = 1 + random() % 4; n > 0; --n) piece += "abcd"[random() % 3];
            scores.emplace(piece, -static_cast<double>(random() % 1000) / 100);
        }
        double lowest = 0;
        json vocab = json::array();
        for (const auto& [piece, score] : scores) {
            vocab.push_back(json::array({piece, score}));
            lowest = std::min(lowest, score);
        }
        json::size_type unk = 0;
        while (vocab[unk][0] != "<unk>") ++unk;
        const auto t = built({{"model", {{"type", "Unigram"}, {"unk_id", unk}, {"vocab", vocab}}}});
        std::string word;
        for (size_t n = 1 + random() % 40; n > 0; --n) word += "abcd"[random() % 4];
        double sum = 0;
        size_t spelled_bytes = 0;
        for (const TokenId id : t->encode(word)) {
            if (static_cast<size_t>(id) == unk) continue;
            sum += vocab[static_cast<size_t>(id)][1].get<double>();
            spelled_bytes += vocab[static_cast<size_t>(id)][0].get<std::string>().size();
        }
        sum += static_cast<double>(word.size() - spelled_bytes) * (lowest - 10);
        EXPECT_NEAR(sum, best_sum(word, scores, lowest - 10), 1e-9) << word;
    }
}

json unigram(const std::vector<json>& pieces, const json& unk) { // pieces: [text, score]
    return {{"model", {{"type", "Unigram"}, {"unk_id", unk}, {"vocab", pieces}}}};
}
json scored(const std::string& text, const json& score) { return json::array({text, score}); }

TEST(Unigram, makes_one_unknown_token_of_a_run_or_its_bytes) {
    json source = unigram({scored("a", -1.0), scored("<unk>", 0.0)}, 1);
    EXPECT_THAT(built(source)->encode("aüüa\u00e9"), ElementsAre(0, 1, 0, 1));
    for (const char* byte : {"<0xC3>", "<0xBC>"}) source["model"]["vocab"].push_back(scored(byte, -1.0));
    source["model"]["byte_fallback"] = true;
    EXPECT_THAT(built(source)->encode("aüüa\u00e9"), ElementsAre(0, 2, 3, 2, 3, 0, 1));
    EXPECT_THAT(built(source)->encode(""), IsEmpty());
}

TEST(Unigram, takes_a_million_letters) {
    const auto t = built(unigram({scored("<unk>", 0.0), scored("a", -2.0), scored("aaaa", -3.0)}, 0));
    EXPECT_EQ(t->encode(std::string(1 << 20, 'a')).size(), size_t{1} << 18);
}

TEST(Unigram, refuses_vocabularies_that_say_nothing_sure) {
    EXPECT_THAT(refusal(unigram({scored("a", -1.0)}, nullptr)), HasSubstr("unk_id null is not a token"));
    EXPECT_THAT(refusal(unigram({scored("a", -1.0)}, 1)), HasSubstr("unk_id 1 is not a token"));
    EXPECT_THAT(refusal(unigram({scored("a", "b")}, 0)),
                HasSubstr("token 0 is [\"a\",\"b\"], not a string and its score"));
    EXPECT_THAT(refusal(unigram({scored("a", 1e300)}, 0)), HasSubstr("token 0 has the score"));
    EXPECT_THAT(refusal(unigram({scored("a", -1.0), scored("a", -2.0)}, 0)),
                HasSubstr("token 'a' has the ids 0 and 1"));
    EXPECT_THAT(refusal(unigram({}, 0)), HasSubstr("no list 'vocab'"));
    json bytes = unigram({scored("a", -1.0)}, 0);
    bytes["pre_tokenizer"] = {{"type", "ByteLevel"}};
    EXPECT_THAT(refusal(bytes), HasSubstr("'Unigram' with a ByteLevel pre_tokenizer is not supported"));
}

}  // namespace
}  // namespace patchbay::text::subword_models_test
