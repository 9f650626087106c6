// Rings of equal blocks: who is in one, in which order, and that blocks leave it alone.
#include "kv/twin_rings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace patchbay::kv::twin_rings_test {
namespace {

using testing::ElementsAre;

std::vector<BlockId> ring_of(const TwinRings& rings, BlockId first) {
    std::vector<BlockId> out = {first};
    for (BlockId b = rings.next(first); b != first && out.size() < 10; b = rings.next(b)) out.push_back(b);
    return out;
}

TEST(TwinRings, EachBlockIsAloneAtFirst) {
    const TwinRings rings(3);
    for (const BlockId b : {0, 1, 2}) {
        EXPECT_FALSE(rings.has_twin(b)) << b;
        EXPECT_THAT(ring_of(rings, b), ElementsAre(b));
    }
}

TEST(TwinRings, OneThatJoinsIsTheLastBeforeTheHead) {
    TwinRings rings(5);
    rings.join(3, 1);
    rings.join(0, 1);
    EXPECT_THAT(ring_of(rings, 1), ElementsAre(1, 3, 0));
    rings.join(4, 3); // the head is another one: between 1 and 3
    EXPECT_THAT(ring_of(rings, 1), ElementsAre(1, 4, 3, 0));
    EXPECT_TRUE(rings.has_twin(4));
    EXPECT_FALSE(rings.has_twin(2));
}

TEST(TwinRings, OneThatLeavesIsAloneAndTheOthersStayInOrder) {
    TwinRings rings(4);
    for (const BlockId b : {1, 2, 3}) rings.join(b, 0);
    rings.leave(2);
    EXPECT_FALSE(rings.has_twin(2));
    EXPECT_THAT(ring_of(rings, 0), ElementsAre(0, 1, 3));
    rings.leave(0); // the head
    EXPECT_THAT(ring_of(rings, 1), ElementsAre(1, 3));
    rings.leave(1);
    EXPECT_FALSE(rings.has_twin(3)) << "it is the last of its ring";
    rings.leave(3);
    EXPECT_THAT(ring_of(rings, 3), ElementsAre(3));
    rings.join(3, 2);
    EXPECT_THAT(ring_of(rings, 2), ElementsAre(2, 3)) << "a block may join again";
}

TEST(TwinRings, ClearingLeavesEachBlockAlone) {
    TwinRings rings(4);
    rings.join(1, 0);
    rings.join(3, 2);
    rings.clear();
    for (const BlockId b : {0, 1, 2, 3}) EXPECT_FALSE(rings.has_twin(b)) << b;
}

}  // namespace
}  // namespace patchbay::kv::twin_rings_test
