// The order of free blocks, and a walk over them while blocks come and go.
#include "kv/free_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace patchbay::kv::free_list_test {
namespace {

using testing::ElementsAre;

TEST(FreeList, HasAllBlocksAtFirstAndKeepsTheOrderOfPushes) {
    FreeList list(4);
    EXPECT_THAT(list.all(), ElementsAre(0, 1, 2, 3));
    for (const BlockId b : {1, 0, 3}) list.remove(b);
    EXPECT_EQ(list.first(), 2);
    list.push_back(3);
    list.push_front(0);
    EXPECT_THAT(list.all(), ElementsAre(0, 2, 3));
    EXPECT_EQ(list.count(), 3u);
    const uint32_t references[] = {0, 1, 0, 0};
    const auto sound = list.audit(references);
    EXPECT_TRUE(sound) << sound.error();
}

TEST(FreeList, IsEmptyOnceAllAreTaken) {
    FreeList list(2);
    list.remove(0);
    list.remove(1);
    EXPECT_EQ(list.first(), kNoBlock);
    list.push_front(1);
    EXPECT_THAT(list.all(), ElementsAre(1));
}

TEST(FreeList, AWalkMissesNoBlockThatStays) {
    FreeList list(5);
    std::vector<BlockId> seen;
    list.begin_walk();
    EXPECT_TRUE(list.walk(2, seen));
    list.remove(2); // which comes next
    list.remove(0); // which was seen
    list.push_back(0);
    EXPECT_TRUE(list.walk(2, seen));
    EXPECT_FALSE(list.walk(2, seen));
    EXPECT_THAT(seen, ElementsAre(0, 1, 3, 4, 0));
}

TEST(FreeList, AnAuditNamesABlockThatIsInUseAndFree) {
    const FreeList list(2);
    const uint32_t references[] = {0, 1};
    EXPECT_EQ(list.audit(references).error(), "block 1 is in the free list and in use");
    EXPECT_EQ(list.audit(references).code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace patchbay::kv::free_list_test
