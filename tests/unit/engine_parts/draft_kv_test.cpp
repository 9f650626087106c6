// What a draft model has computed, as the target's KV is taken over, shared, moved and dropped.
#include "engine/speculation/draft_kv.hpp"

#include <gmock/gmock.h>

#include "unit/engine_parts/part_fixture.hpp"

namespace patchbay::engine::testing::draft_kv_test {
namespace {

using ::testing::IsEmpty;

TEST(DraftKvTable, FollowsWhatBecomesOfTheTargetsKv) {
    DraftKvTable table(true);
    const auto s = sequence(1, 9), fork = sequence(2, 9);
    s->computed = 8;
    table.admitted(*s);
    EXPECT_EQ(table.of(*s).computed, 8u) << "pages that were found hold both models' KV";
    table.of(*s).ahead = {5};
    table.of(*s).lost = true;
    fork->computed = 6;
    table.forked(*fork, *s);
    EXPECT_EQ(table.of(*fork).computed, 6u);
    EXPECT_FALSE(table.of(*fork).lost);
    EXPECT_TRUE(table.continued(*s, 7).lost) << "who takes its place does not know either";
    s->computed = 4;
    table.swapped_out(*s);
    EXPECT_EQ(table.of(*s).computed, 4u);
    EXPECT_THAT(table.of(*s).ahead, IsEmpty());
    table.erase(*s);
    EXPECT_EQ(table.of(*s).computed, 0u);
}

TEST(DraftKvTable, WithoutADraftModelKeepsNothing) {
    DraftKvTable table(false);
    const auto s = sequence(1, 9);
    s->computed = 8;
    table.admitted(*s);
    table.computes(*s, {0, 8, 0});
    table.set(*s, {.computed = 5, .ahead = {}, .hidden = {}, .made = {}});
    EXPECT_EQ(table.of(*s).computed, 0u);
    EXPECT_EQ(table.of(*s).hidden.count, 0u);
    EXPECT_EQ(table.continued(*s, 3).computed, 0u);
}

}  // namespace
}  // namespace patchbay::engine::testing::draft_kv_test
