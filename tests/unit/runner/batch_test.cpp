// The arrays of a step, for two KV groups of tokens and one of states; and filled up for a graph.
#include "runner/batch.hpp"

#include <gmock/gmock.h>

#include "kv/block_table.hpp"

namespace patchbay::runner::batch_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int32_t> list(std::span<const int32_t> values) { return {values.begin(), values.end()}; }
std::vector<int64_t> list(std::span<const int64_t> values) { return {values.begin(), values.end()}; }

class BatchTest : public ::testing::Test {
  protected:
    BatchTest() {
        first_.pages = {{7, 3}, {11, 12}, {40}};
        second_.pages = {{5}, {13}, {41}};
        batch_.clear({.block_size = 4, .token_groups = 2, .state_groups = 1});
        const int32_t chunk[] = {100, 101, 102}, next[] = {200};
        batch_.add({chunk, 2, 1, first_});
        batch_.add({next, 0, 1, second_});
        batch_.finish();
    }

    kv::BlockTable first_, second_;
    Batch batch_;
};

TEST_F(BatchTest, PutsTheTokensOfItsSequencesOneAfterTheOther) {
    const BatchArrays& a = batch_.arrays();
    EXPECT_THAT(a.ids, ElementsAre(100, 101, 102, 200));
    EXPECT_THAT(a.positions, ElementsAre(2, 3, 4, 0));
    EXPECT_THAT(a.query_starts, ElementsAre(0, 3, 4));
    EXPECT_THAT(a.seq_lens, ElementsAre(5, 1));
    EXPECT_THAT(a.is_first_chunk, ElementsAre(0, 1));
    EXPECT_THAT(a.logit_rows, ElementsAre(2, 3));
    EXPECT_EQ(batch_.max_query_len(), 3u);
    EXPECT_EQ(batch_.attention(0).max_seq_len, 5u);
}

TEST_F(BatchTest, SaysWhereTheKvOfEachGroupLies) {
    const BatchPages& p = batch_.pages();
    EXPECT_THAT(list(p.slots(0)), ElementsAre(7 * 4 + 2, 7 * 4 + 3, 3 * 4, 5 * 4));
    EXPECT_THAT(list(p.slots(1)), ElementsAre(11 * 4 + 2, 11 * 4 + 3, 12 * 4, 13 * 4));
    EXPECT_THAT(list(p.blocks()), ElementsAre(7, 3, 5, 11, 12, 13));
    EXPECT_THAT(list(p.block_starts(0)), ElementsAre(0, 2, 3));
    EXPECT_THAT(list(p.block_starts(1)), ElementsAre(3, 5, 6));
    EXPECT_THAT(list(p.state_pages(2)), ElementsAre(40, 41));
}

TEST_F(BatchTest, IsFilledUpWithWhatWritesNothing) {
    batch_.pad(6, 5, 4);
    const BatchArrays& a = batch_.arrays();
    EXPECT_THAT(a.ids, ElementsAre(100, 101, 102, 200, 0, 0));
    EXPECT_THAT(a.seq_lens, ElementsAre(5, 1, 1, 1, 0)) << "two of one token, one of none";
    EXPECT_THAT(a.query_starts, ElementsAre(0, 3, 4, 5, 6, 6));
    EXPECT_THAT(a.logit_rows, ElementsAre(2, 3, 0, 0));
    const BatchPages& p = batch_.pages();
    EXPECT_THAT(list(p.slots(0)).back(), -1);
    EXPECT_THAT(list(p.block_starts(1)), ElementsAre(5, 7, 8, 9, 10, 10));
    EXPECT_THAT(list(p.state_pages(2)), ElementsAre(40, 41, kv::kNoBlock, kv::kNoBlock, kv::kNoBlock));
}

TEST_F(BatchTest, KeepsNothingOfTheStepBefore) {
    batch_.copy({});
    batch_.want_hidden({0, 1});
    batch_.clear({.block_size = 4, .token_groups = 2, .state_groups = 1});
    batch_.finish();
    EXPECT_EQ(batch_.tokens(), 0u);
    EXPECT_EQ(batch_.sequences(), 0u);
    EXPECT_THAT(batch_.copies(), IsEmpty());
    EXPECT_THAT(batch_.hidden(), IsEmpty());
    EXPECT_THAT(list(batch_.pages().blocks()), IsEmpty());
}

}  // namespace
}  // namespace patchbay::runner::batch_test
