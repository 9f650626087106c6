#include "experiment/windows.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace patchbay::experiment::windows_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Windows, FollowOneAnother) {
    const auto plan = plan_windows(DisjointWindows{}, 100, 20, 5, 1);
    ASSERT_TRUE(plan) << plan.error();
    EXPECT_THAT(plan->starts, ElementsAre(0, 20, 40, 60, 80));
    EXPECT_EQ(plan->independent, 5u);
}

TEST(Windows, ShareTheTraceWhereTheFileNamesNoLength) {
    const auto plan = plan_windows(DisjointWindows{}, 107, 0, 10, 1);
    ASSERT_TRUE(plan) << plan.error();
    EXPECT_EQ(plan->rows, 10u);
    EXPECT_EQ(plan->starts.back(), 90u);
}

TEST(Windows, AreRefusedWhereTheTraceIsTooShort) {
    EXPECT_THAT(plan_windows(DisjointWindows{}, 99, 20, 5, 1).error(),
                HasSubstr("the trace has 99 rows, 5 windows of 20 need 100; ask for fewer"));
    EXPECT_THAT(plan_windows(DisjointWindows{}, 3, 0, 5, 1).error(), HasSubstr("has 3 rows"));
    EXPECT_TRUE(plan_windows(DrawnWindows{0.5}, 99, 20, 5, 1)); // 4 × 10 + 20
}

TEST(Windows, DrawnOnesKeepToTheirOverlapAndLieAnywhere) {
    uint32_t lowest = ~0u, highest = 0;
    for (uint64_t seed = 0; seed < 200; ++seed) {
        const auto plan = plan_windows(DrawnWindows{0.25}, 120, 20, 5, seed);
        ASSERT_TRUE(plan) << plan.error();
        auto starts = plan->starts;
        std::sort(starts.begin(), starts.end());
        for (size_t i = 1; i < starts.size(); ++i) EXPECT_GE(starts[i] - starts[i - 1], 15u);
        EXPECT_LE(starts.back() + 20, 120u);
        lowest = std::min(lowest, starts[0]);
        highest = std::max(highest, starts.back());
    }
    EXPECT_EQ(lowest, 0u);
    EXPECT_EQ(highest, 100u);
}

TEST(Windows, ThatOverlapCountAsThoseThatDoNot) {
    const auto plan = plan_windows(DrawnWindows{0.5}, 60, 20, 5, 1); // no slack: at 0, 10, 20, 30, 40
    ASSERT_TRUE(plan) << plan.error();
    EXPECT_EQ(plan->independent, 3u);
    EXPECT_EQ(plan_windows(DrawnWindows{0}, 100, 20, 5, 1)->independent, 5u);
}

TEST(Windows, MayBeTheSameForAllRepeats) {
    const auto plan = plan_windows(SameWindow{}, 30, 0, 3, 1);
    ASSERT_TRUE(plan) << plan.error();
    EXPECT_THAT(plan->starts, ElementsAre(0, 0, 0));
    EXPECT_EQ(plan->rows, 30u);
}

}  // namespace
}  // namespace patchbay::experiment::windows_test
