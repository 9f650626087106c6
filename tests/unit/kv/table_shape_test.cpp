// How many pages a table needs, by its groups.
#include "kv/table_shape.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace patchbay::kv::table_shape_test {
namespace {

using testing::ElementsAre;

const GroupSpec kAll{GroupKind::kFull, 0}, kWindow{GroupKind::kSliding, 6}, kState{GroupKind::kRecurrent, 0};

TEST(TableShape, HasGroupsOfTokensBeforeStates) {
    const TableShape shape({kState, kAll, kState, kWindow}, 4);
    EXPECT_THAT(shape.groups(), ElementsAre(kAll, kWindow, kState, kState));
    EXPECT_THAT(shape.windows(), ElementsAre(0u, 6u));
    EXPECT_EQ(shape.state_pages(), 2u);
}

TEST(TableShape, LacksAPageAGroupForEachBlockAndOneForEachState) {
    const TableShape shape({kAll, kWindow, kState}, 4);
    BlockTable t;
    EXPECT_EQ(shape.lacking(t, 0), 0u);
    EXPECT_EQ(shape.lacking(t, 1), 3u);
    EXPECT_EQ(shape.lacking(t, 9), 7u);
    t.pages.resize(3);
    t.blocks = 2;
    t.held = 5;
    EXPECT_EQ(shape.capacity(t), 8u);
    EXPECT_EQ(shape.lacking(t, 8), 0u);
    EXPECT_EQ(shape.lacking(t, 9), 2u);
}

TEST(TableShape, AWindowSeesBlocksFromItsFirstTokenOn) {
    const TableShape shape({kAll, kWindow}, 4);
    EXPECT_EQ(shape.first_seen(0, 100), 0u);
    EXPECT_EQ(shape.first_seen(1, 5), 0u); // tokens 0 to 5
    EXPECT_EQ(shape.first_seen(1, 8), 0u); // 3 to 8
    EXPECT_EQ(shape.first_seen(1, 9), 1u); // 4 to 9
}

}  // namespace
}  // namespace patchbay::kv::table_shape_test
