#include "grammar/rules.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace patchbay::grammar::rules_test {
namespace {

CodePoints every_other(uint32_t count) {
    std::vector<CodePoints::Range> ranges;
    for (uint32_t i = 0; i < count; ++i) ranges.push_back({2 * i, 2 * i});
    return CodePoints::of(std::move(ranges));
}

TEST(Rules, AreLimitedByWhatTheyTakeTogether) {
    const CodePoints large = every_other(20'000);
    Rules rules;
    const uint64_t fit = Rules::kMaxBytes / large.ranges().size_bytes();
    ASSERT_LT(fit, Rules::kMaxExprs / 10);
    for (uint64_t i = 0; i + 1 < fit; ++i) rules.chars(large);
    EXPECT_EQ(rules.fault(), "");
    for (uint64_t i = 0; i < 2; ++i) rules.chars(large);
    EXPECT_EQ(rules.fault(), "the grammar's parts take more than 64 MiB");
}

TEST(Rules, CountAutomataByTheirEdges) {
    Dfa dfa;
    dfa.states.resize(1000);
    for (Dfa::State& s : dfa.states) s.edges.resize(100);
    Rules rules;
    for (uint64_t i = 0; i < Rules::kMaxBytes / (1000 * 100 * sizeof(Dfa::Edge)); ++i) rules.automaton(dfa);
    EXPECT_NE(rules.fault(), "");
}

}  // namespace
}  // namespace patchbay::grammar::rules_test
