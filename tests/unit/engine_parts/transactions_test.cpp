// Swaps of two slots as one, over slots that a test says all of.
#include "engine/swap/transactions.hpp"

#include <gmock/gmock.h>

#include "unit/engine_parts/step_neighbours.hpp"

namespace patchbay::engine::testing::transactions_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using host::SwapState;

struct Bench {
    Bench() { context.step = 1; }
    void post(uint64_t not_before_ns = 0) {
        const uint64_t number = part.next_number();
        swaps = {prepare(first, number), prepare(second, number)};
        part.post({{&first, swaps[0]}, {&second, swaps[1]}}, not_before_ns);
    }
    static std::shared_ptr<host::Swap> prepare(FakeSwapPort& port, uint64_t number) {
        return port.slot().line().prepare(play<FakeSampler>(kFakeSampler).component, named("attention", "next"),
                                          number);
    }
    std::vector<SwapState> states() const {
        std::vector<SwapState> out;
        for (const auto& s : swaps) out.push_back(s->record().state);
        return out;
    }
    void pass(FakeSwapPort& port) { // a step of its probation
        port.slot().count_step();
    }

    VirtualClock clock;
    StepContext context;
    std::vector<host::Identity> plugins;
    SwapJournal journal{context, plugins};
    FakeSwapPort first{clock, context, journal}, second{clock, context, journal};
    config::SwapSettings settings{.probation_steps = 1, .max_call_ms = 0};
    Transactions part{settings, clock, journal, context};
    std::vector<std::shared_ptr<host::Swap>> swaps;
};

TEST(Transactions, AllTakeTheirSlotsAtOneBoundaryAndAreCommittedInOneStep) {
    Bench b;
    b.post();
    EXPECT_THAT(b.states(), Each(SwapState::kPosted));
    b.part.at_boundary(false);
    EXPECT_THAT(b.states(), Each(SwapState::kOnProbation));
    b.pass(b.first);
    b.part.settle();
    EXPECT_THAT(b.states(), Each(SwapState::kOnProbation)) << "the other one has not passed";
    b.pass(b.second);
    b.part.settle();
    EXPECT_THAT(b.states(), Each(SwapState::kCommitted));
    EXPECT_EQ(b.first.committed, 1);
    EXPECT_EQ(b.second.committed, 1);
}

TEST(Transactions, AreDueAtTheirTimeAndNotBefore) {
    Bench b;
    b.post(1'000);
    b.part.at_boundary(false);
    EXPECT_THAT(b.states(), Each(SwapState::kPosted));
    b.clock.advance_ns(1'000);
    b.part.at_boundary(false);
    EXPECT_THAT(b.states(), Each(SwapState::kOnProbation));
}

TEST(Transactions, OfWhatComputesWaitForTheStepsInFlight) {
    Bench b;
    b.second.in_pass = false; // it is enough that one computes
    b.post();
    b.part.at_boundary(true);
    EXPECT_THAT(b.states(), Each(SwapState::kPosted));
    EXPECT_TRUE(b.part.waits_for_steps());
    EXPECT_TRUE(b.part.any_candidate());
    b.part.at_boundary(false);
    EXPECT_THAT(b.states(), Each(SwapState::kOnProbation));
    EXPECT_FALSE(b.part.any_candidate());
}

TEST(Transactions, OneThatDoesNotServeBringsAllPredecessorsBack) {
    for (const bool is_first : {true, false}) {
        Bench b;
        (is_first ? b.first : b.second).fault = "not these requests";
        b.post();
        b.part.at_boundary(false);
        EXPECT_THAT(b.states(), Each(SwapState::kRolledBack));
        EXPECT_EQ(b.first.rolled_back, 1);
        EXPECT_EQ(b.second.rolled_back, 1);
        const host::SwapRecord its = b.swaps[is_first ? 0 : 1]->record(), others = b.swaps[is_first ? 1 : 0]->record();
        EXPECT_EQ(its.phase, "accepts");
        EXPECT_EQ(others.phase, kTogether);
        EXPECT_EQ(others.reason, failed_by(its).text);
        EXPECT_EQ(its.code, StatusCode::kUnsupported);
        EXPECT_EQ(others.code, StatusCode::kUnsupported);
    }
}

// A policy of the cache hears what another one's entry throws out of it, and may fail there.
TEST(Transactions, OneThatFailsWhileAnotherEntersTakesAllBack) {
    Bench b;
    b.second.entering = [&] { b.first.roll_back("update", fail("not this page")); };
    b.post();
    b.part.at_boundary(false);
    EXPECT_THAT(b.states(), Each(SwapState::kRolledBack));
    EXPECT_EQ(b.swaps[0]->record().phase, "update");
    EXPECT_EQ(b.swaps[1]->record().phase, kTogether);
    EXPECT_EQ(b.swaps[1]->record().reason, failed_by(b.swaps[0]->record()).text);
    EXPECT_EQ(b.second.rolled_back, 1);
    EXPECT_FALSE(b.part.any_candidate());
}

TEST(Transactions, OneThatLeavesOnProbationTakesTheOthersWithIt) {
    Bench b;
    b.post();
    b.part.at_boundary(false);
    b.pass(b.second);
    b.first.roll_back("time", fail("plan took too long"));
    b.part.settle();
    EXPECT_THAT(b.states(), Each(SwapState::kRolledBack));
    EXPECT_EQ(b.swaps[1]->record().reason, "attention fake→next was rolled back in phase time: plan took too long");
    b.post(); // and the slots are free again
    b.part.at_boundary(false);
    EXPECT_THAT(b.states(), Each(SwapState::kOnProbation));
}

TEST(Transactions, NumbersBeginAtOneAndAreNotGivenTwice) {
    Bench b;
    EXPECT_EQ(b.part.next_number(), 1u);
    EXPECT_EQ(b.part.next_number(), 2u);
}

}  // namespace
}  // namespace patchbay::engine::testing::transactions_test
