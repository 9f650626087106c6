// What a part keeps of some sequences.
#include "engine/request/sequence_records.hpp"

#include <gtest/gtest.h>

namespace patchbay::engine::testing::sequence_records_test {
namespace {

TEST(SequenceRecords, ASequenceThatAsksForNothingHasNone) {
    SequenceRecords<int> part;
    EXPECT_TRUE(part.empty());
    EXPECT_EQ(part.find(1), nullptr);
    part.add(2, 20);
    EXPECT_EQ(part.find(1), nullptr);
    EXPECT_FALSE(part.empty());
}

TEST(SequenceRecords, StayUntilTheirSequenceEnds) {
    SequenceRecords<int> part;
    part.add(1, 10) += 1;
    part.add(2, 20);
    part.of(3) += 5; // made with it
    const SequenceRecords<int>& seen = part;
    ASSERT_NE(seen.find(1), nullptr);
    EXPECT_EQ(*seen.find(1), 11);
    EXPECT_EQ(*seen.find(2), 20);
    EXPECT_EQ(*seen.find(3), 5);
    part.erase(1);
    part.erase(1);
    EXPECT_EQ(seen.find(1), nullptr);
    EXPECT_EQ(*seen.find(2), 20);
    part.erase(2);
    part.erase(3);
    EXPECT_TRUE(part.empty());
}

TEST(SequenceRecords, OneThatIsAddedAnewBeginsAnew) {
    SequenceRecords<int> part;
    part.add(1, 10);
    EXPECT_EQ(part.add(1), 0);
    EXPECT_EQ(part.of(1), 0) << "one that is there stays";
}

}  // namespace
}  // namespace patchbay::engine::testing::sequence_records_test
