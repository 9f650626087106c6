#include "engine/output/stop_matcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace patchbay::engine::stop_matcher_test {
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

std::string random_text(std::mt19937& random, size_t max_bytes) {
    std::string out;
    for (size_t n = 1 + random() % max_bytes; out.size() < n;) out += random() % 4 == 0 ? 'b' : 'a';
    return out;
}

// By the meaning of the words, on the whole text each time: what may be shown of it, and the stop string that ends it.
struct Shown {
    std::string text, matched;
};
Shown shown_of(const std::string& text, size_t may_end_from, const std::vector<std::string>& stops, Keep keep) {
    size_t first = text.size(), hold = 0;
    std::string matched;
    for (const std::string& stop : stops) {
        for (size_t at = 0; at + stop.size() <= text.size(); ++at) {
            const bool better = at < first || (at == first && stop.size() > matched.size());
            if (text.compare(at, stop.size(), stop) != 0 || at + stop.size() <= may_end_from || !better) continue;
            first = at;
            matched = stop;
        }
        for (size_t n = 1; n < stop.size(); ++n)
            if (text.ends_with(stop.substr(0, n))) hold = std::max(hold, n);
    }
    if (matched.empty()) return {text.substr(0, text.size() - hold), ""};
    return {text.substr(0, first + (keep == Keep::kIncluding ? matched.size() : 0)), matched};
}

TEST(StopMatcher, RandomTextsEndAsTheirMeaningSays) {
    std::mt19937 random(7);
    for (int i = 0; i < 20'000; ++i) {
        std::vector<std::string> stops(1 + random() % 3);
        for (std::string& stop : stops) stop = random_text(random, 8);
        const Keep keep = random() % 2 ? Keep::kBefore : Keep::kIncluding;
        const size_t early = random() % 4; // so many parts may not end it
        StopMatcher m(stops, keep);
        std::string text, out;
        for (size_t part = 0; part < 12 && m.matched().empty(); ++part) {
            const size_t before = text.size();
            const std::string more = random_text(random, 4);
            text += more;
            out += m.add(more, part >= early);
            const Shown expected = shown_of(text, part >= early ? before : text.size(), stops, keep);
            ASSERT_EQ(out, expected.text) << i << ": " << text;
            ASSERT_EQ(m.matched(), expected.matched) << i << ": " << text;
        }
        if (m.matched().empty()) {
            ASSERT_EQ(out + m.flush(), text);
        }
    }
}

}  // namespace
}  // namespace patchbay::engine::stop_matcher_test
