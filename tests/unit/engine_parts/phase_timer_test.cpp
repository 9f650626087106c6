// Where the time of a step goes.
#include "engine/loop/phase_timer.hpp"

#include <gtest/gtest.h>

namespace patchbay::engine::testing::phase_timer_test {
namespace {

struct Bench {
    uint64_t spent(Phase phase) const { return context.report.phase_ns[static_cast<size_t>(phase)]; }

    VirtualClock clock;
    StepContext context;
    PhaseTimer part{clock, context};
};

TEST(PhaseTimer, APhaseBeginsWhereTheOneBeforeItEnded) {
    Bench b;
    b.clock.advance_ns(1000);
    b.context.now_ns = 900; // the step began 100 before
    ASSERT_TRUE(b.part.run(Phase::kPlan, [&] { b.clock.advance_ns(30); }));
    EXPECT_EQ(b.spent(Phase::kPlan), 130u);
    EXPECT_EQ(b.context.now_ns, 1030u);
    b.clock.advance_ns(5); // between two phases
    ASSERT_TRUE(b.part.run(Phase::kBuild, [&] { b.clock.advance_ns(7); }));
    EXPECT_EQ(b.spent(Phase::kBuild), 12u);
    EXPECT_EQ(b.spent(Phase::kPlan), 130u);
    uint64_t all = 0;
    for (const uint64_t ns : b.context.report.phase_ns) all += ns;
    EXPECT_EQ(all, b.clock.now_ns() - 900) << "no time is left out, and none counts twice";
}

TEST(PhaseTimer, APhaseThatComesTwiceInAStepIsTheSumOfBoth) {
    Bench b;
    for (const uint64_t ns : {40, 2}) ASSERT_TRUE(b.part.run(Phase::kRun, [&] { b.clock.advance_ns(ns); }));
    EXPECT_EQ(b.spent(Phase::kRun), 42u);
}

TEST(PhaseTimer, AFailureIsPassedOnAndItsTimeCounts) {
    Bench b;
    const Result<> done = b.part.run(Phase::kSample, [&]() -> Result<> {
        b.clock.advance_ns(9);
        return fail(StatusCode::kExhausted, "there is no memory");
    });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error(), "there is no memory");
    EXPECT_EQ(done.code(), StatusCode::kExhausted);
    EXPECT_EQ(b.spent(Phase::kSample), 9u);
    EXPECT_EQ(b.context.now_ns, b.clock.now_ns());
    EXPECT_TRUE(b.part.run(Phase::kSample, []() -> Result<> { return {}; }));
}

}  // namespace
}  // namespace patchbay::engine::testing::phase_timer_test
