#include "base/clock.hpp"

#include <gtest/gtest.h>

#include <regex>

namespace patchbay::clock_test {
namespace {

TEST(Clock, VirtualTimeMovesOnlyOnRequest) {
    VirtualClock clock;
    EXPECT_EQ(clock.now_ns(), 0u);
    EXPECT_EQ(clock.now_ns(), 0u);
    clock.advance_ns(5);
    clock.wait_until_ns(3); // has passed
    EXPECT_EQ(clock.now_ns(), 5u);
    clock.wait_until_ns(9);
    EXPECT_EQ(clock.now_ns(), 9u);
}

TEST(Clock, RealTimeNeverGoesBackAndWaitingReachesItsGoal) {
    RealClock clock;
    const uint64_t start = clock.now_ns(), goal = start + 1'000'000;
    clock.wait_until_ns(start); // has passed: returns
    clock.wait_until_ns(goal);
    EXPECT_GE(clock.now_ns(), goal);
}

TEST(Clock, TheDateIsWrittenAsAsked) {
    EXPECT_TRUE(std::regex_match(utc_now(), std::regex(R"(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ)"))) << utc_now();
    EXPECT_TRUE(std::regex_match(utc_now("%Y%m%d"), std::regex(R"(20\d{6})")));
    EXPECT_EQ(utc_now(std::string(500, 'a').c_str()), std::string(500, 'a'));
    EXPECT_EQ(utc_now(""), "");
}

}  // namespace
}  // namespace patchbay::clock_test
