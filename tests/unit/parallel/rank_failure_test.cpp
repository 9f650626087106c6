// Which of several faults of ranks becomes the failure, and how long it lasts.
#include "parallel/rank_failure.hpp"

#include <gtest/gtest.h>

namespace patchbay::parallel::rank_failure_test {
namespace {

using Lasts = RankFailure::Lasts;
using Sign = RankFailure::Sign;

TEST(RankFailure, IsTheMostCertainCauseOnceTheEarliestTimeHasCome) {
    RankFailure f;
    EXPECT_EQ(f.due(1'000), nullptr);
    f.suspect(Sign::kReported, 100, fail("rank 2: lost rank 1"));
    f.suspect(Sign::kReported, 50, fail("rank 3: lost rank 1")); // no more certain than the first
    EXPECT_EQ(f.due(99), nullptr);
    f.suspect(Sign::kClosed, 200, fail("rank 1 closed its connection"));
    ASSERT_NE(f.due(100), nullptr);
    EXPECT_EQ(f.due(100)->why.text, "rank 1 closed its connection");
    EXPECT_FALSE(f.due(100)->passes);
    EXPECT_FALSE(f.exists()); // it is not declared yet
}

TEST(RankFailure, OfARankThatExitedIsWhatItReportedBefore) {
    RankFailure f;
    EXPECT_TRUE(f.ended(true, 10)); // it reported nothing
    f.suspect(Sign::kReported, 100, fail("rank 1: no such folder"));
    EXPECT_TRUE(f.due(100)->passes);
    EXPECT_TRUE(f.ended(false, 10)); // a signal says more
    EXPECT_FALSE(f.ended(true, 20));
    ASSERT_NE(f.due(20), nullptr);
    EXPECT_EQ(f.due(20)->why.text, "rank 1: no such folder");
    EXPECT_FALSE(f.due(20)->passes); // the rank is gone
    f.suspect(Sign::kEnded, 30, fail("rank 2 was ended by signal 9"));
    EXPECT_FALSE(f.ended(false, 40)); // one such cause is enough
}

TEST(RankFailure, StaysTheFirstAndMayBecomeLasting) {
    RankFailure f;
    f.set(fail("first"), Lasts::kForTheSession, true);
    EXPECT_FALSE(f.is_lasting());
    EXPECT_FALSE(f.changes(Lasts::kForTheSession));
    f.set(fail("second"), Lasts::kForGood, true);
    EXPECT_EQ(f.why().text, "first"); // the session knows this one
    EXPECT_TRUE(f.is_lasting());
    EXPECT_FALSE(f.changes(Lasts::kForGood));
}

TEST(RankFailure, BetweenSessionsIsTheLastingOne) {
    RankFailure f;
    f.set(fail("first"), Lasts::kForTheSession, true);
    f.set(fail("second"), Lasts::kForGood, false);
    EXPECT_EQ(f.why().text, "second");
}

TEST(RankFailure, OfASessionEndsWithIt) {
    RankFailure f;
    f.suspect(Sign::kReported, 10, fail("rank 1: no such folder"));
    f.set(f.due(10)->why, Lasts::kForTheSession, true);
    f.end_session();
    EXPECT_FALSE(f.exists());
    EXPECT_EQ(f.due(10), nullptr);
    f.suspect(Sign::kClosed, 20, fail("rank 1 closed its connection"));
    f.end_session();
    EXPECT_NE(f.due(20), nullptr); // the rank is gone for the next one, too
}

}  // namespace
}  // namespace patchbay::parallel::rank_failure_test
