#include "engine/output/stop_matcher.hpp"

#include <gtest/gtest.h>

namespace patchbay::engine {
namespace {

using Keep = StopMatcher::Keep;

TEST(StopMatcher, WithoutStopsTextPassesAtOnce) {
    StopMatcher m({}, Keep::kBefore);
    EXPECT_EQ(m.add("abc"), "abc");
    EXPECT_EQ(m.flush(), "");
}

TEST(StopMatcher, HoldsBackWhatMayBecomeAStopString) {
    StopMatcher m({"STOP"}, Keep::kBefore);
    EXPECT_EQ(m.add("one ST"), "one ");
    EXPECT_EQ(m.add("ART S"), "START ");
    EXPECT_EQ(m.flush(), "S");
}

TEST(StopMatcher, CutsAcrossTokenBorders) {
    StopMatcher m({"STOP"}, Keep::kBefore);
    EXPECT_EQ(m.add("one ST"), "one ");
    EXPECT_EQ(m.add("OP two"), "");
    EXPECT_EQ(m.matched(), "STOP");
    EXPECT_EQ(m.add("more"), "");
    EXPECT_EQ(m.flush(), "");
}

TEST(StopMatcher, KeepsTheStopStringWhenAsked) {
    StopMatcher m({"STOP"}, Keep::kIncluding);
    EXPECT_EQ(m.add("one STOP two"), "one STOP");
}

TEST(StopMatcher, TheEarliestMatchWins) {
    StopMatcher m({"two", "on"}, Keep::kBefore);
    EXPECT_EQ(m.add("x on two"), "x ");
    EXPECT_EQ(m.matched(), "on");
}

TEST(StopMatcher, OfTwoAtOnePlaceTheLongerWins) {
    StopMatcher m({"a", "ab"}, Keep::kIncluding);
    EXPECT_EQ(m.add("xab"), "xab");
    EXPECT_EQ(m.matched(), "ab");
}

TEST(StopMatcher, EveryWayOfCuttingTheTextGivesTheSame) {
    const std::string text = "the cat sat on the matmat";
    for (size_t a = 0; a <= text.size(); ++a)
        for (size_t b = a; b <= text.size(); ++b) {
            StopMatcher m({"on the matm"}, Keep::kBefore);
            std::string out = m.add(text.substr(0, a));
            out += m.add(text.substr(a, b - a));
            out += m.add(text.substr(b));
            out += m.flush();
            ASSERT_EQ(out, "the cat sat ") << a << ' ' << b;
        }
}

}  // namespace
}  // namespace patchbay::engine
