// How attention on a GPU is dealt out: plain C++.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "unit/cuda/attention_case.hpp"

namespace patchbay::kernels::cuda::attention_plan_test {
namespace {

AttentionShape shape_of(int32_t heads, int32_t kv_heads, int64_t window = 0) {
    return {heads, kv_heads, 64, 16, window, 0.125f, 0, PB_BF16};
}

AttentionGrid grid_of(uint32_t busy) { return {busy, busy, 1}; }

// Each row's keys are covered once, whole splits at a time but for the ends; partial sums do not overlap.
void check(const AttentionShape& shape, const AttentionBatch& batch, const AttentionLimits& limits,
           const AttentionPlan& plan) {
    const int32_t group = shape.heads / shape.kv_heads;
    std::map<std::pair<int32_t, int32_t>, std::vector<std::pair<int32_t, int32_t>>> keys; // by (token, row)
    std::set<int64_t> partial_rows;
    for (const AttentionItem& item : plan.items) {
        EXPECT_EQ(item.rows > kFewRows, &item - plan.items.data() < plan.tiles); // those come first
        ASSERT_GT(item.rows, 0);
        ASSERT_LE(item.rows, kTileRows);
        ASSERT_EQ(item.token, batch.query_starts[item.sequence]);
        ASSERT_LT(item.key_from, item.key_to);
        ASSERT_EQ(item.key_from % kKeys, 0);
        for (int32_t r = 0; r < item.rows; ++r)
            keys[{item.token, item.first_row + r}].push_back({item.key_from, item.key_to});
        if (item.partial < 0) continue;
        for (int32_t split = item.key_from / kSplit; split <= (item.key_to - 1) / kSplit; ++split)
            for (int32_t r = 0; r < item.rows; ++r) {
                const int64_t row = item.partial + (split - item.key_from / kSplit) * item.rows + r;
                ASSERT_TRUE(partial_rows.insert(row).second) << "two splits share row " << row;
                ASSERT_LT(row, limits.partial_rows);
            }
    }
    std::set<int64_t> merged_rows;
    for (const AttentionMerge& merge : plan.merges)
        for (int64_t i = 0; i < int64_t{merge.splits} * merge.rows; ++i) merged_rows.insert(merge.partial + i);
    EXPECT_EQ(merged_rows, partial_rows);
    size_t rows = 0;
    for (uint32_t s = 0; s < batch.seq_count; ++s)
        for (int32_t t = batch.query_starts[s]; t < batch.query_starts[s + 1]; ++t)
            for (int32_t h = 0; h < group; ++h, ++rows) {
                auto parts = keys[{batch.query_starts[s], (t - batch.query_starts[s]) * group + h}];
                ASSERT_FALSE(parts.empty());
                std::sort(parts.begin(), parts.end());
                EXPECT_LE(parts.front().first, first_key(shape, batch.positions[t]));
                EXPECT_GT(parts.back().second, batch.positions[t]);
                for (size_t i = 1; i < parts.size(); ++i) {
                    EXPECT_EQ(parts[i].first, parts[i - 1].second);
                    EXPECT_EQ(parts[i].first % kSplit, 0);
                }
            }
    EXPECT_EQ(rows, keys.size());
}

TEST(CudaAttentionPlan, CoversEveryRowAndKeyOnce) {
    const std::vector<std::vector<Span>> kBatches = {
        {{0, 1}},
        {{0, 700}},
        {{1500, 1501}, {30, 31}, {255, 256}, {256, 257}},
        {{100, 420}, {900, 901}, {0, 64}, {7, 7}}};
    for (const auto& spans : kBatches)
        for (const auto& shape : {shape_of(8, 2), shape_of(4, 4), shape_of(8, 1, 100), shape_of(4, 2, 700)})
            for (const uint32_t busy : {1, 5, 64, 1000}) {
                const Case c(shape, PB_BF16, spans);
                AttentionLimits limits = attention_limits(shape, 8, 1024, 2048, grid_of(busy));
                AttentionPlan plan;
                ASSERT_TRUE(plan_attention(shape, c.batch(), limits, plan));
                check(shape, c.batch(), limits, plan);
                limits.partial_rows = 40; // most are worked through by one block each
                ASSERT_TRUE(plan_attention(shape, c.batch(), limits, plan));
                check(shape, c.batch(), limits, plan);
            }
}

TEST(CudaAttentionPlan, SplitsLongSequencesOnlyWhereBlocksWouldBeIdle) {
    const AttentionShape shape = shape_of(8, 2);
    const Case one(shape, PB_BF16, {{2047, 2048}});
    AttentionPlan plan;
    ASSERT_TRUE(plan_attention(shape, one.batch(), attention_limits(shape, 64, 64, 4096, grid_of(264)), plan));
    EXPECT_EQ(plan.items.size(), 8u); // as many as there are splits
    EXPECT_EQ(plan.merges.size(), 1u);
    ASSERT_TRUE(plan_attention(shape, one.batch(), attention_limits(shape, 64, 64, 4096, grid_of(2)), plan));
    EXPECT_EQ(plan.items.size(), 1u);
    EXPECT_TRUE(plan.merges.empty());

    std::vector<Span> many(40, Span{511, 512});
    many.push_back({2047, 2048}); // a straggler among many is split all the same
    const Case mixed(shape, PB_BF16, many);
    ASSERT_TRUE(plan_attention(shape, mixed.batch(), attention_limits(shape, 64, 64, 4096, grid_of(80)), plan));
    EXPECT_EQ(plan.merges.size(), 1u);
}

// A sequence of four splits, for idle warps or idle blocks.
TEST(CudaAttentionPlan, CountsBlocksForTilesAndWarpsForFewRows) {
    const AttentionShape shape = shape_of(8, 1);
    const Case decoding(shape, PB_BF16, {{1023, 1024}}), computing(shape, PB_BF16, {{1020, 1024}});
    AttentionPlan plan;
    ASSERT_TRUE(plan_attention(shape, decoding.batch(), attention_limits(shape, 4, 64, 2048, {100, 1, 2}), plan));
    EXPECT_EQ(plan.tiles, 0);
    EXPECT_EQ(plan.items.size(), 2u); // of two warps
    ASSERT_TRUE(plan_attention(shape, computing.batch(), attention_limits(shape, 4, 64, 2048, {4, 100, 8}), plan));
    EXPECT_EQ(plan.tiles, 4);
    EXPECT_EQ(plan.items.size(), 4u); // of four blocks
}

TEST(CudaAttentionPlan, SaysWhenItHasNoRoom) {
    const AttentionShape shape = shape_of(8, 2);
    const Case c(shape, PB_BF16, {{0, 700}});
    AttentionLimits limits = attention_limits(shape, 1, 1024, 1024, grid_of(1));
    AttentionPlan plan;
    limits.items = 43; // 700 tokens of 4 heads: 44 tiles
    EXPECT_FALSE(plan_attention(shape, c.batch(), limits, plan));
    limits.items = 44;
    EXPECT_TRUE(plan_attention(shape, c.batch(), limits, plan));
}

TEST(CudaAttentionPlan, RoomIsEnoughForAnyBatchOfTheSizesItIsFor) {
    for (const uint32_t busy : {1, 132, 528})
        for (const auto& shape : {shape_of(8, 1), shape_of(32, 8), shape_of(4, 4)}) {
            const AttentionLimits limits = attention_limits(shape, 16, 256, 4096, grid_of(busy));
            for (const auto& spans : {std::vector<Span>(16, Span{4080, 4096}), std::vector<Span>(16, Span{4095, 4096}),
                                      std::vector<Span>{{0, 256}}, std::vector<Span>{{3840, 4096}}}) {
                const Case c(shape, PB_BF16, spans);
                AttentionPlan plan;
                EXPECT_TRUE(plan_attention(shape, c.batch(), limits, plan));
                EXPECT_LE(int32_t(plan.merges.size()), limits.merges);
                EXPECT_LE(plan.partial_rows, limits.partial_rows);
            }
        }
}

TEST(CudaAttentionPlan, ALayoutsPartsFollowEachOther) {
    const AttentionShape shape = shape_of(32, 8);
    const AttentionLimits limits = attention_limits(shape, 256, 8192, 131072, {264, 132, 7});
    const AttentionLayout layout = attention_layout(shape, limits);
    EXPECT_GE(layout.items, sizeof(AttentionHeader));
    EXPECT_GE(layout.merges, layout.items + uint64_t(limits.items) * sizeof(AttentionItem));
    EXPECT_GE(layout.states, layout.merges + uint64_t(limits.merges) * sizeof(AttentionMerge));
    EXPECT_GE(layout.sums, layout.states + uint64_t(limits.partial_rows) * 8 * 8);
    EXPECT_GE(layout.bytes, layout.sums + uint64_t(limits.partial_rows) * 8 * 64 * 4);
    EXPECT_LT(layout.bytes, 80u << 20);
}

}  // namespace
}  // namespace patchbay::kernels::cuda::attention_plan_test
