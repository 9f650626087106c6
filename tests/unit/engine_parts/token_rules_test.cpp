// Bad words and allowed tokens over the rows of a path, against their definition.
#include "engine/sampling/token_rules.hpp"

#include <gmock/gmock.h>

#include <random>

#include "text/tokenizer.hpp"
#include "unit/engine_parts/part_fixture.hpp"

namespace patchbay::engine::testing::token_rules_test {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kVocab = 40;
constexpr size_t kWords = 2;
const std::vector<TokenId> kEos = {2};

bool has(const uint32_t* mask, TokenId t) {
    return mask[static_cast<size_t>(t) / 32] >> (t % 32) & 1;
}
MaskWords mask_of(const std::vector<TokenId>& allowed) {
    MaskWords out(kWords, 0);
    for (const TokenId t : allowed) out[static_cast<size_t>(t) / 32] |= 1u << (t % 32);
    return out;
}

// A word is not said: no row allows its last token where the output, drafts included, ends in all before it.
TEST(TokenRules, ForbidTheEndsOfBadWordsOverRandomOutputs) {
    std::mt19937 draw(4);
    size_t forbidden = 0, unsatisfiable = 0;
    for (int trial = 0; trial < 3000; ++trial) {
        TokenRules rules(nullptr, kEos, kVocab);
        const auto s = sequence(1, 2);
        TokenRules::Rules own;
        for (uint32_t i = 1 + draw() % 5; i > 0; --i) {
            std::vector<TokenId> word(2 + draw() % 2);
            for (TokenId& t : word) t = 30 + static_cast<TokenId>(draw() % 3);
            own.bad_words.push_back(std::move(word));
        }
        std::vector<TokenId> allowed = {30, 31, 32};
        if (draw() % 2) allowed.resize(1 + draw() % 2);
        const bool limited = draw() % 3 > 0;
        if (limited) own.allowed = mask_of(allowed);
        const auto words = own.bad_words;
        rules.add(*s, std::make_shared<const TokenRules::Rules>(own));
        const uint32_t outputs = draw() % 4, drafts = draw() % 3;
        for (uint32_t i = 0; i < outputs + drafts; ++i) s->tokens.push_back(30 + static_cast<TokenId>(draw() % 3));
        s->drafts = drafts;

        std::vector<pb_sample_row> rows(drafts + 1);
        for (uint32_t j = 0; j < rows.size(); ++j) rows[j].allowed = rules.mask(*s, outputs + j);
        MaskWords memory;
        RowConstraint::Unsatisfiable none;
        ASSERT_TRUE(rules.applies(*s));
        rules.mask({*s, s->tokens, s->confirmed(), 0, 100, rows}, memory, none);
        for (uint32_t j = 0; j < rows.size(); ++j) {
            std::vector<TokenId> left;
            for (TokenId t = 0; t < static_cast<TokenId>(kVocab); ++t) {
                bool may = !limited || std::ranges::find(allowed, t) != allowed.end();
                std::vector<TokenId> output(s->tokens.begin() + 2, s->tokens.begin() + 2 + outputs + j);
                output.push_back(t);
                for (const auto& word : words)
                    if (output.size() >= word.size() && std::equal(word.rbegin(), word.rend(), output.rbegin()))
                        may = false;
                if (may) left.push_back(t);
            }
            const auto bad = std::ranges::find(none, 100 + j, &std::pair<uint32_t, std::string>::first);
            ASSERT_EQ(bad != none.end(), left.empty()) << trial;
            unsatisfiable += left.empty();
            if (left.empty()) continue;
            const uint32_t* const mask = rows[j].allowed;
            if (!mask) {
                ASSERT_EQ(left.size(), kVocab) << trial;
                continue;
            }
            ASSERT_EQ(std::vector(mask, mask + kWords), mask_of(left)) << trial << ", row " << j;
            forbidden += kVocab - left.size();
        }
    }
    EXPECT_GT(forbidden, 1000u);
    EXPECT_GT(unsatisfiable, 50u);
}

TEST(TokenRules, AMaskThatSiblingsShareIsNotWrittenTo) {
    TokenRules rules(nullptr, kEos, kVocab);
    const auto s = sequence(1, 2), sibling = sequence(2, 2);
    rules.add(*s, std::make_shared<const TokenRules::Rules>(
                      TokenRules::Rules{.allowed = mask_of({30, 31}), .before_stop = {}, .bad_words = {{30, 31}}}));
    rules.inherit(*s, *sibling);
    s->tokens.push_back(30);
    std::vector<pb_sample_row> rows(1);
    rows[0].allowed = rules.mask(*s, 1);
    MaskWords memory;
    RowConstraint::Unsatisfiable none;
    rules.mask({*s, s->tokens, 3, 0, 0, rows}, memory, none);
    EXPECT_FALSE(has(rows[0].allowed, 31));
    EXPECT_TRUE(has(rules.mask(*sibling, 0), 31));
}

TEST(TokenRules, RefuseTokensThatTheModelDoesNotHave) {
    const TokenRules rules(nullptr, kEos, kVocab);
    const auto refused = [&](std::vector<TokenId> allowed) {
        SamplingParams p;
        p.allowed_token_ids = std::move(allowed);
        const auto read = rules.read(p);
        return read ? std::string() : read.error();
    };
    EXPECT_EQ(refused({0, 39}), "");
    EXPECT_EQ(refused({40}), "allowed_token_ids has 40, expected 0 to 39");
    EXPECT_EQ(refused({-1}), "allowed_token_ids has -1, expected 0 to 39");
    EXPECT_EQ(refused({}), "allowed_token_ids is empty, expected at least one token");
}

TEST(TokenRules, MinTokensForbidsTheModelsEndsUnlessTheyAreIgnored) {
    const TokenRules rules(nullptr, kEos, kVocab);
    SamplingParams p;
    p.min_tokens = 1;
    p.stop_token_ids = {35, 4000}; // the latter no token of the model's: it cannot be sampled anyway
    const auto read = rules.read(p);
    ASSERT_TRUE(read);
    EXPECT_FALSE(has((*read)->before_stop.data(), 2));
    EXPECT_FALSE(has((*read)->before_stop.data(), 35));
    EXPECT_TRUE(has((*read)->before_stop.data(), 39));
    p.ignore_eos = true;
    const auto ignoring = rules.read(p);
    ASSERT_TRUE(ignoring);
    EXPECT_TRUE(has((*ignoring)->before_stop.data(), 2));
    EXPECT_TRUE((*rules.read({}))->empty()) << "a request without rules has none";
}

class CountingTokenizer final : public text::Tokenizer { // of bytes
  public:
    std::vector<TokenId> encode(std::string_view text) const override {
        calls += 1;
        return {text.begin(), text.end()};
    }
    std::string_view token_bytes(TokenId) const override { return "x"; }
    bool is_special(TokenId) const override { return false; }
    uint32_t vocab_size() const override { return 128; }
    std::optional<TokenId> eos() const override { return std::nullopt; }
    std::optional<TokenId> id_of(std::string_view) const override { return std::nullopt; }
    mutable int calls = 0;
};

TEST(TokenRules, ThatWereReadBeforeAreNotReadAgain) {
    const auto tokenizer = std::make_shared<const CountingTokenizer>();
    const TokenRules rules(tokenizer, kEos, 128), others(tokenizer, kEos, 128);
    SamplingParams p;
    p.bad_words = {"ab", "c"};
    const auto first = rules.read(p);
    ASSERT_TRUE(first) << first.error();
    EXPECT_EQ((*first)->bad_words.size(), 1u); // the other one is a token
    const int once = tokenizer->calls;
    EXPECT_GT(once, 0);
    EXPECT_EQ(*rules.read(p, *first), *first);
    EXPECT_EQ(tokenizer->calls, once);
    EXPECT_NE(*others.read(p, *first), *first) << "of another engine";
    EXPECT_EQ(tokenizer->calls, 2 * once);
}

}  // namespace
}  // namespace patchbay::engine::testing::token_rules_test
