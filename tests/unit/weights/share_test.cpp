// Which pieces a rank's share of a weight has, where nothing is stored that could contradict.
#include "weights/share.hpp"

#include <gmock/gmock.h>

#include "unit/weights/weight_specs.hpp"

namespace patchbay::weights::share_test {
namespace {

using testing::HasSubstr;

const StoredTensors kNone;

TEST(Share, OfRowsHasThoseOfEachPart) {
    const auto share = share_of(spec(8, {part("q", 8, "q.bias", 2), part("k", 4, "", 1)}, PB_SHARD_ROWS), 1, 2, kNone);
    ASSERT_TRUE(share) << share.error();
    ASSERT_EQ(share->pieces.size(), 2u);
    EXPECT_EQ(share->pieces[0].name, "q");
    EXPECT_EQ(share->pieces[0].row, 4);
    EXPECT_EQ(share->pieces[0].rows, 4);
    EXPECT_EQ(share->pieces[1].row, 2);
    EXPECT_EQ(share->rows, 6);
    EXPECT_EQ(share->cols, 8);
    EXPECT_EQ(share->biases[0].rows * share->biases[0].cols, 4);
    EXPECT_EQ(share->biases[1].name, "");
    EXPECT_TRUE(share->has_bias);
}

TEST(Share, OfColumnsHasABiasOnTheFirstRankAlone) {
    const pb_weight_spec down = spec(8, {part("o", 4, "o.bias")}, PB_SHARD_COLS);
    const auto first = share_of(down, 0, 2, kNone), second = share_of(down, 1, 2, kNone);
    ASSERT_TRUE(first && second);
    EXPECT_TRUE(first->has_bias);
    EXPECT_FALSE(second->has_bias);
    EXPECT_EQ(second->pieces[0].col, 4);
    EXPECT_EQ(second->pieces[0].cols, 4);
    EXPECT_EQ(second->rows, 4);
}

TEST(Share, IsDealtInWholeUnits) {
    EXPECT_THAT(share_of(spec(1, {part("q", 6, "", 2)}, PB_SHARD_ROWS), 0, 2, kNone).error(),
                HasSubstr("cannot deal the 6 rows of 'q' to 2 ranks in units of 2"));
    EXPECT_THAT(share_of(spec(8, {part("q", 2)}), 2, 2, kNone).error(), HasSubstr("rank 2 of 2 does not exist"));
}

TEST(Share, TakesRowsFromTheMiddleOfATensor) {
    pb_weight_part k = part("qkv", 2);
    k.first_row = 4;
    k.stored_rows = 8;
    const auto share = share_of(spec(3, {k}), 0, 1, kNone);
    ASSERT_TRUE(share) << share.error();
    EXPECT_EQ(share->pieces[0].row, 4);
    EXPECT_EQ(share->pieces[0].rows, 2);
    EXPECT_EQ(share->pieces[0].shape, (std::vector<int64_t>{8, 3}));
    k.first_row = 7;
    EXPECT_THAT(share_of(spec(3, {k}), 0, 1, kNone).error(), HasSubstr("2 rows from 7 on of 'qkv', which has 8"));
}

}  // namespace
}  // namespace patchbay::weights::share_test
