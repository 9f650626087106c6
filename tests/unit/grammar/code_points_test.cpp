#include "grammar/code_points.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "grammar/unicode_classes.hpp"

namespace patchbay::grammar::code_points_test {
namespace {

using Range = CodePoints::Range;

std::set<uint32_t> members(const CodePoints& set) {
    std::set<uint32_t> out;
    for (const auto [low, high] : set.ranges())
        for (uint32_t c = low; c <= high; ++c) out.insert(c);
    return out;
}

void expect_normal(const CodePoints& set) { // sorted, disjoint, not adjacent
    for (size_t i = 0; i < set.ranges().size(); ++i) {
        EXPECT_LE(set.ranges()[i].low, set.ranges()[i].high);
        EXPECT_TRUE(i == 0 || set.ranges()[i - 1].high + 1 < set.ranges()[i].low);
    }
}

TEST(CodePoints, AreSetsWhateverTheOrder) {
    std::mt19937 draw(1);
    for (int trial = 0; trial < 2000; ++trial) {
        std::vector<Range> given[2];
        std::set<uint32_t> expected[2];
        CodePoints one_by_one[2], at_once[2];
        for (int k : {0, 1}) {
            for (uint32_t n = draw() % 12; n > 0; --n) {
                const uint32_t low = draw() % 150, high = low + draw() % 6;
                given[k].push_back({low, high});
                one_by_one[k].add(low, high);
                for (uint32_t c = low; c <= high; ++c) expected[k].insert(c);
            }
            at_once[k] = CodePoints::of(given[k]);
            expect_normal(at_once[k]);
            ASSERT_EQ(members(at_once[k]), expected[k]);
            ASSERT_EQ(members(one_by_one[k]), expected[k]);
            for (uint32_t c = 0; c < 160; ++c) ASSERT_EQ(at_once[k].contains(c), expected[k].contains(c));
        }
        CodePoints both = at_once[0];
        both.add(at_once[1]);
        expect_normal(both);
        std::set<uint32_t> all = expected[0], rest, common;
        all.insert(expected[1].begin(), expected[1].end());
        for (const uint32_t c : expected[0]) (expected[1].contains(c) ? common : rest).insert(c);
        ASSERT_EQ(members(both), all);
        ASSERT_EQ(members(at_once[0].without(at_once[1])), rest);
        ASSERT_EQ(members(at_once[0].common(at_once[1])), common);
    }
}

TEST(UnicodeClasses, AreMadeOnceForEachName) {
    const auto letters = unicode_class("Lowercase_Letter"), again = unicode_class("lowercase letter");
    ASSERT_TRUE(letters && again);
    EXPECT_EQ(*letters, *again);
    EXPECT_TRUE((*letters)->contains('a'));
    EXPECT_FALSE(unicode_class("Lowercase_Lettre"));
}

TEST(UnicodeClasses, HaveTheOtherCasesOfTheirCharacters) {
    Work work(1'000'000);
    const auto cases = [&](std::vector<Range> ranges) {
        const auto out = in_either_case(CodePoints::of(std::move(ranges)), work);
        EXPECT_TRUE(out) << out.error();
        if (out) expect_normal(*out);
        return out ? members(*out) : std::set<uint32_t>();
    };
    using Set = std::set<uint32_t>;
    EXPECT_EQ(cases({{'a', 'b'}, {'X', 'X'}, {'1', '1'}}), (Set{'1', 'A', 'B', 'X', 'a', 'b', 'x'}));
    EXPECT_EQ(cases({{0x3C2, 0x3C2}}), (Set{0x3A3, 0x3C2, 0x3C3})); // three sigmas
    EXPECT_EQ(cases({{0x131, 0x131}}), (Set{'I', 'i', 0x130, 0x131}));
    EXPECT_EQ(cases({{0, CodePoints::kLast}}).size(), CodePoints::kLast + 1u);
    Work little(1000);
    EXPECT_FALSE(in_either_case(CodePoints::all(), little));
}

}  // namespace
}  // namespace patchbay::grammar::code_points_test
