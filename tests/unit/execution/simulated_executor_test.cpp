// Made-up tokens in the time that a device charges: what they follow from, and what they never are.
#include "execution/simulated_executor.hpp"

#include <gmock/gmock.h>

#include <set>

#include "unit/execution/played_step.hpp"

namespace patchbay::execution::testing::simulated_executor_test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::SizeIs;

constexpr auto kVocab = static_cast<int32_t>(FakeModel::kVocab);

struct Bench {
    explicit Bench(std::vector<int32_t> eos = {}) {
        played.fake->charged = 1000;
        part = std::make_unique<SimulatedExecutor>(std::move(played.runner), nullptr, std::move(eos));
    }
    std::vector<int32_t> tokens(PlayedStep& step) {
        if (const auto done = part->submit(step.input()); !done) throw std::runtime_error(done.error());
        return back(step.paths());
    }
    std::vector<int32_t> back(std::span<const RowPath> paths) {
        const auto out = part->wait(paths);
        if (!out) throw std::runtime_error(out.error());
        EXPECT_TRUE(out->is_sampled);
        EXPECT_THAT(out->logits, IsEmpty());
        return {out->sampled.tokens.begin(), out->sampled.tokens.end()};
    }
    PlayedRunner played{false};
    std::unique_ptr<SimulatedExecutor> part;
};

std::vector<int32_t> prompt(uint32_t tokens) { return std::vector<int32_t>(tokens, 1); }

TEST(SimulatedExecutor, AStepTakesTheTimeThatTheDeviceCharges) {
    Bench b;
    PlayedStep step;
    step.add(1, prompt(4));
    b.tokens(step);
    EXPECT_EQ(b.played.clock.now_ns(), 1000u);
    EXPECT_EQ(b.part->tokens(), TokenSource::kMadeUp);
}

TEST(SimulatedExecutor, TokensFollowFromSeedAndPositionWhateverElseIsInTheStep) {
    Bench b;
    PlayedStep alone, among;
    alone.add(7, prompt(4), 3);
    among.add(3, prompt(2)).add(7, prompt(4), 3);
    const auto expected = b.tokens(alone), both = b.tokens(among);
    EXPECT_THAT(expected, AllOf(SizeIs(3), Each(AllOf(Ge(0), Lt(kVocab)))));
    EXPECT_EQ(std::vector<int32_t>(both.begin() + 1, both.end()), expected);
    EXPECT_EQ(b.tokens(alone), expected) << "and again";
    std::set<int32_t> seen; // they are not all the same one
    for (uint64_t id = 0; id < 32; ++id) {
        PlayedStep step;
        step.add(id, prompt(1));
        seen.insert(b.tokens(step)[0]);
    }
    EXPECT_GT(seen.size(), 3u);
}

TEST(SimulatedExecutor, NoTokenEndsAnOutput) {
    const std::vector<int32_t> eos = {0, 2, 4}, stop = {1, 3, 5};
    Bench b(eos);
    for (uint64_t id = 0; id < 16; ++id) {
        PlayedStep step;
        step.add(id, prompt(4), 4);
        step.paths()[0].stop_token_ids = stop;
        EXPECT_THAT(b.tokens(step), Each(Ge(6)));
    }
}

TEST(SimulatedExecutor, ATokenIsOneThatAGrammarAllows) {
    Bench b;
    const uint32_t only_five = 1u << 5;
    for (uint64_t id = 0; id < 8; ++id) {
        PlayedStep step;
        step.add(id, prompt(4));
        step.rows()[0].allowed = &only_five;
        EXPECT_THAT(b.tokens(step), ElementsAre(5));
    }
}

TEST(SimulatedExecutor, RowsOfSequencesThatHaveEndedAreNoTokens) {
    Bench b;
    PlayedStep step;
    step.add(1, prompt(4), 2).add(2, prompt(4));
    ASSERT_TRUE(b.part->submit(step.input()));
    step.paths().erase(step.paths().begin());
    EXPECT_THAT(b.back(step.paths()), ElementsAre(-1, -1, Ge(0)));
}

TEST(SimulatedExecutor, StepsInFlightComeBackInTheirOrder) {
    Bench b;
    PlayedStep first, second;
    first.add(1, prompt(4), 2);
    second.add(2, prompt(4), 1);
    const auto of_first = b.tokens(first), of_second = b.tokens(second);
    ASSERT_TRUE(b.part->submit(first.overlapping()));
    ASSERT_TRUE(b.part->submit(second.overlapping()));
    EXPECT_EQ(b.back(first.paths()), of_first);
    EXPECT_EQ(b.back(second.paths()), of_second);
}

TEST(SimulatedExecutor, WhatWasCancelledIsNotGivenOut) {
    Bench b;
    PlayedStep lost, next;
    lost.add(1, prompt(4), 3);
    next.add(2, prompt(4));
    ASSERT_TRUE(b.part->submit(lost.overlapping()));
    b.part->cancel();
    ASSERT_TRUE(b.part->submit(next.overlapping()));
    EXPECT_THAT(b.back(next.paths()), SizeIs(1));
}

TEST(SimulatedExecutor, CandidatesBeginWithTheTokenAndAreNotTwiceTheSame) {
    Bench b;
    pb_sampling_params params{};
    params.logprobs = 4;
    PlayedStep step;
    step.add(1, prompt(4), 2, params);
    ASSERT_TRUE(b.part->submit(step.input(4)));
    const auto out = b.part->wait(step.paths());
    ASSERT_TRUE(out) << out.error();
    ASSERT_EQ(out->sampled.max_logprobs, 4u);
    ASSERT_THAT(out->sampled.top_tokens, SizeIs(8));
    for (size_t row = 0; row < 2; ++row) {
        const auto tokens = out->sampled.top_tokens.subspan(row * 4, 4);
        const auto logprobs = out->sampled.top_logprobs.subspan(row * 4, 4);
        EXPECT_THAT(tokens, ::testing::Contains(out->sampled.tokens[row]));
        EXPECT_LE(out->sampled.logprobs[row], 0);
        std::set<int32_t> seen;
        for (size_t k = 0; k < 4 && tokens[k] >= 0; ++k) {
            EXPECT_TRUE(seen.insert(tokens[k]).second);
            EXPECT_LE(logprobs[k], 0);
            EXPECT_LE(logprobs[k], logprobs[k > 0 ? k - 1 : 0]) << "the likeliest first";
        }
        EXPECT_GE(seen.size(), 2u);
    }
}

}  // namespace
}  // namespace patchbay::execution::testing::simulated_executor_test
