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

// Whether its first byte, its last or none lies in the text that it may not end in.
TEST(StopMatcher, OnlyItsEndHasToLieWhereItMayEnd) {
    for (const Keep keep : {Keep::kBefore, Keep::kIncluding})
        for (size_t early = 0; early <= 10; ++early) {
            const std::string text = "a STOP STOP b";
            StopMatcher m({"STOP"}, keep);
            std::string out;
            for (size_t i = 0; i < text.size(); ++i) out += m.add(text.substr(i, 1), i >= early);
            const std::string before = early < 6 ? "a " : "a STOP "; // the first one ends at byte 5
            EXPECT_EQ(out, before + (keep == Keep::kIncluding ? "STOP" : "")) << early;
            EXPECT_EQ(m.matched(), "STOP");
        }
    StopMatcher overlapping({"aa", "xaab"}, Keep::kBefore);
    EXPECT_EQ(overlapping.add("xaa", false), "") << "it may become the longer one";
    EXPECT_EQ(overlapping.add("a"), "xa");
    EXPECT_EQ(overlapping.matched(), "aa");
    StopMatcher never({"STOP"}, Keep::kBefore);
    EXPECT_EQ(never.add("STOP S", false), "STOP ");
    EXPECT_EQ(never.flush(), "S");
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
