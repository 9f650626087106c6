// A rank's part in swaps, without rank 0: what it answers, and what it computes with then.
#include "execution/rank_swaps.hpp"

#include <gmock/gmock.h>

#include "paths.hpp"
#include "unit/execution/other_rank.hpp"
#include "unit/execution/played_step.hpp"

namespace patchbay::execution::testing::rank_swaps_test {
namespace {

using ::testing::HasSubstr;
using Slot = parallel::RankSwap::Slot;
using Verb = parallel::RankSwap::Verb;

const host::Registry& no_plugins() {
    static const host::Registry none = *host::Registry::open({});
    return none;
}

struct Bench {
    Bench() { // the store is there within a session
        if (const auto begun = ranks.hub->begin(""); !begun) throw std::runtime_error(begun.error());
    }
    void perform(parallel::RankSwap swap) {
        swap.number = ++number;
        const auto done = part.perform(parallel::bytes_of(swap));
        EXPECT_TRUE(done) << done.error();
    }
    // What rank 0 finds in the store then.
    std::string answer(const parallel::RankSwap& swap) {
        perform(swap);
        const auto got = ranks.hub->take(parallel::swap_key(number, 1));
        if (!got) return "no answer: " + got.error();
        const auto answered = parallel::read_swap_answer(*got);
        return answered ? "" : answered.error();
    }
    static parallel::RankSwap swap(Slot slot, Verb verb, uint64_t candidate) {
        parallel::RankSwap out;
        out.slot = slot;
        out.verb = verb;
        out.candidate = candidate;
        return out;
    }

    TwoRanks ranks;
    PlayedRunner played;
    config::EngineConfig config;
    host::Services services;
    uint64_t number = 0;
    RankSwaps part{{*ranks.spoke, 1, config, no_plugins(), services, *played.runner}};
};

TEST(RankSwaps, WhatIsInUseStays) {
    Bench b;
    const host::Component* const attention = &b.played.runner->attention().component();
    const host::Component* const model = &b.played.runner->model().component();
    EXPECT_EQ(b.answer(Bench::swap(Slot::kAttention, Verb::kUse, 0)), "");
    EXPECT_EQ(b.answer(Bench::swap(Slot::kModel, Verb::kUse, 0)), "");
    EXPECT_EQ(&b.played.runner->attention().component(), attention);
    EXPECT_EQ(&b.played.runner->model().component(), model);
}

TEST(RankSwaps, ACandidateThatIsNotThereCannotBeUsed) {
    Bench b;
    for (const Slot slot : {Slot::kAttention, Slot::kModel}) {
        EXPECT_EQ(b.answer(Bench::swap(slot, Verb::kUse, 7)), "there is no such candidate");
        b.perform(Bench::swap(slot, Verb::kDrop, 7)); // nor need it be
        EXPECT_EQ(b.answer(Bench::swap(slot, Verb::kUse, 0)), "") << "what is there goes on";
    }
}

TEST(RankSwaps, OneThatCannotBePreparedIsRefusedWithTheReasonAndStepsGoOn) {
    Bench b;
    parallel::RankSwap attention = Bench::swap(Slot::kAttention, Verb::kPrepare, 1);
    attention.library = "/nowhere/attention.so";
    attention.plugin = "next";
    EXPECT_THAT(b.answer(attention), HasSubstr("/nowhere/attention.so"));
    parallel::RankSwap model = Bench::swap(Slot::kModel, Verb::kPrepare, 1);
    model.weights = "/nowhere/weights";
    model.plugin = "next";
    EXPECT_THAT(b.answer(model), HasSubstr("/nowhere/weights"));
    EXPECT_EQ(b.answer(Bench::swap(Slot::kAttention, Verb::kUse, 1)), "there is no such candidate");
    PlayedStep step;
    step.add(1, {3});
    const std::lock_guard held(b.part.device());
    EXPECT_TRUE(b.played.runner->passes().forward(step.batch()));
}

TEST(RankSwaps, AnExceptionRefusesTheCandidateAndTheRankGoesOn) {
    Bench b;
    parallel::RankSwap attention = Bench::swap(Slot::kAttention, Verb::kPrepare, 1);
    attention.library = std::string(kBuildDir) + "/tests/execution/out_of_memory.so";
    attention.plugin = "out_of_memory";
    EXPECT_EQ(b.answer(attention), "std::bad_alloc");
    EXPECT_EQ(b.answer(Bench::swap(Slot::kAttention, Verb::kUse, 1)), "there is no such candidate");
    EXPECT_EQ(b.answer(Bench::swap(Slot::kAttention, Verb::kUse, 0)), "");
}

TEST(RankSwaps, AMessageThatIsNoneIsAFault) {
    Bench b;
    EXPECT_FALSE(b.part.perform("not a swap"));
}

}  // namespace
}  // namespace patchbay::execution::testing::rank_swaps_test
