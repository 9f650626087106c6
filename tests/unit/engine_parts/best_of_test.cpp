// best_of: outputs are kept until all have ended, and the best ones are handed out.
#include "engine/groups/best_of.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace patchbay::engine::testing::best_of_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RequestOutput delta(uint32_t index, std::vector<TokenId> tokens, std::string text = {}) {
    RequestOutput out{};
    out.index = index;
    out.tokens = std::move(tokens);
    out.text = std::move(text);
    return out;
}
RequestOutput last(uint32_t index, double sum, FinishReason reason = FinishReason::kStop) {
    RequestOutput out = delta(index, {static_cast<TokenId>(index)});
    out.finish = reason;
    out.cumulative_logprob = sum;
    return out;
}

struct Bench {
    explicit Bench(uint32_t n, uint32_t made) {
        take = best_of(n, made, [this](const RequestOutput& o) { given.push_back(o); });
    }
    std::vector<TokenId> winners() const {
        std::vector<TokenId> out;
        for (const RequestOutput& o : given) out.push_back(o.tokens.back());
        return out;
    }
    std::vector<RequestOutput> given;
    std::function<void(const RequestOutput&)> take;
};

TEST(BestOf, HandsOutTheBestOnceAllHaveEnded) {
    Bench b(2, 3);
    b.take(last(0, -5));
    b.take(last(2, -1));
    EXPECT_THAT(b.given, IsEmpty());
    b.take(last(1, -3));
    EXPECT_THAT(b.winners(), ElementsAre(2, 1));
    EXPECT_EQ(b.given[0].index, 0u) << "the best one's";
    EXPECT_EQ(b.given[1].index, 1u);
}

TEST(BestOf, AnOutputIsTheSumOfItsDeltas) {
    Bench b(1, 2);
    auto first = delta(1, {5}, "once ");
    first.logprobs = {{-0.5f, {}}};
    b.take(first);
    b.take(delta(0, {9}, "no"));
    auto second = delta(1, {6, 7}, "upon");
    second.logprobs = {{-0.25f, {}}, {-0.125f, {}}};
    b.take(second);
    b.take(last(1, -1));
    b.take(last(0, -2));
    ASSERT_EQ(b.given.size(), 1u);
    EXPECT_THAT(b.given[0].tokens, ElementsAre(5, 6, 7, 1));
    EXPECT_EQ(b.given[0].text, "once upon");
    EXPECT_EQ(b.given[0].logprobs.size(), 3u);
    EXPECT_EQ(b.given[0].finish, FinishReason::kStop);
}

TEST(BestOf, CompleteOutputsComeBeforeOthersHoweverProbable) {
    Bench b(3, 3);
    b.take(last(0, -0.1, FinishReason::kError));
    b.take(last(1, -9, FinishReason::kLength));
    b.take(last(2, -8, FinishReason::kRepetition));
    EXPECT_THAT(b.winners(), ElementsAre(2, 1, 0));
}

TEST(BestOf, ASumThatIsNoNumberIsTheWorst) {
    Bench b(3, 3);
    b.take(last(0, NAN));
    b.take(last(1, -1000));
    auto none = last(2, 0);
    none.cumulative_logprob.reset();
    b.take(none);
    EXPECT_THAT(b.winners(), ElementsAre(1, 0, 2)) << "of those that are alike, the first comes first";
}

TEST(BestOf, WhatIsOfThePromptGoesWithTheBest) {
    Bench b(2, 2);
    auto first = last(0, -5);
    first.prompt_logprobs = {{-1, {}}};
    first.cached_tokens = 12;
    first.first_scheduled_ns = 34;
    first.time_ns = 100;
    b.take(first);
    auto second = last(1, -1);
    second.time_ns = 200;
    b.take(second);
    EXPECT_EQ(b.given[0].prompt_logprobs.size(), 1u);
    EXPECT_THAT(b.given[1].prompt_logprobs, IsEmpty());
    for (const RequestOutput& o : b.given) {
        EXPECT_EQ(o.cached_tokens, 12u);
        EXPECT_EQ(o.first_scheduled_ns, 34u);
        EXPECT_EQ(o.time_ns, 200u) << "when the last one ended";
    }
}

TEST(BestOf, WithoutACallbackNothingHappens) {
    const auto take = best_of(1, 1, nullptr);
    EXPECT_NO_THROW(take(last(0, -1)));
}

}  // namespace
}  // namespace patchbay::engine::testing::best_of_test
