#include "experiment/random_ids.hpp"

#include <gmock/gmock.h>

#include <set>

namespace patchbay::experiment::random_ids_test {
namespace {

// Ids below 4 are special; knows fewer ids than the model.
class FewIds final : public text::Tokenizer {
  public:
    std::vector<text::TokenId> encode(std::string_view) const override { return {}; }
    std::string_view token_bytes(text::TokenId) const override { return ""; }
    bool is_special(text::TokenId id) const override { return id < 4; }
    uint32_t vocab_size() const override { return 8; }
    std::optional<text::TokenId> eos() const override { return 0; }
    std::optional<text::TokenId> id_of(std::string_view) const override { return std::nullopt; }
};

RandomIds of_few(uint32_t vocab_size) {
    const FewIds tokenizer;
    auto ids = RandomIds::open(&tokenizer, vocab_size);
    EXPECT_TRUE(ids) << ids.error();
    return *std::move(ids);
}

TEST(RandomIds, AreAllThatAreNotSpecial) {
    const RandomIds random = of_few(100);
    TokenIds ids;
    random.append(ids, Draws(1, 0), Purpose::kPromptIds, 0, 1000);
    EXPECT_EQ(std::set<text::TokenId>(ids.begin(), ids.end()), (std::set<text::TokenId>{4, 5, 6, 7}));
    EXPECT_EQ(random.largest(), 7);
}

TEST(RandomIds, WithoutATokenizerAreAllOfTheModels) {
    const auto random = RandomIds::open(nullptr, 3);
    ASSERT_TRUE(random);
    EXPECT_EQ(random->largest(), 2);
}

TEST(RandomIds, NeedAnIdThatIsNotSpecial) {
    const FewIds tokenizer;
    EXPECT_EQ(RandomIds::open(&tokenizer, 4).error(), "workload: the tokenizer has only special tokens");
}

TEST(RandomIds, AreAFunctionOfTheDrawAndItsNumber) {
    const RandomIds random = of_few(8);
    const auto drawn = [&](uint64_t number, uint32_t tokens) {
        TokenIds ids;
        random.append(ids, Draws(1, 0), Purpose::kPromptIds, number, tokens);
        return ids;
    };
    const TokenIds ten = drawn(5, 10);
    EXPECT_EQ(drawn(5, 10), ten);
    EXPECT_NE(drawn(6, 10), ten);
    EXPECT_EQ(drawn(5, 6), TokenIds(ten.begin(), ten.begin() + 6));
}

TEST(RandomIds, IdsOfAnotherVocabularyAreFolded) {
    const RandomIds random = of_few(8);
    EXPECT_EQ(random.folded(0), 4);
    EXPECT_EQ(random.folded(7), 7);
    EXPECT_EQ(random.folded(50'001), random.folded(1));
}

}  // namespace
}  // namespace patchbay::experiment::random_ids_test
