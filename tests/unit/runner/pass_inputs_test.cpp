// What differs from pass to pass, where a device reads it.
#include "runner/pass_inputs.hpp"

#include <gmock/gmock.h>

#include "played_context.hpp"

namespace patchbay::runner::pass_inputs_test {
namespace {

using testing::PlayedContext;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<int32_t> there(const pb_tensor& t) { // the fake device's memory can be read here
    const auto* const at = static_cast<const int32_t*>(t.data);
    return {at, at + t.shape[0]};
}

TEST(PassInputs, ABatchIsOnTheDeviceOnceItIsPlaced) {
    for (const bool own_memory : {true, false}) {
        PlayedContext c(true, own_memory);
        PassInputs part(c.context());
        const Batch batch = c.batch({3, 1});
        if (own_memory) {
            EXPECT_FALSE(part.has_room_for(batch));
            ASSERT_TRUE(part.make_room_for(batch));
        }
        EXPECT_TRUE(part.has_room_for(batch));
        const auto placed = part.place(batch, std::nullopt);
        ASSERT_TRUE(placed) << placed.error();
        EXPECT_THAT(there(placed->ids), ElementsAre(1, 2, 3, 4));
        EXPECT_THAT(there(placed->positions), ElementsAre(0, 1, 2, 0));
        EXPECT_THAT(there(placed->logit_rows), ElementsAre(2, 3));
        const pb_attention_batch& seen = part.attention(0);
        EXPECT_EQ(seen.seq_count, 2u);
        EXPECT_EQ(seen.token_count, 4u);
        EXPECT_EQ(seen.max_query_len, 3u);
        EXPECT_EQ(seen.graph, 0u);
        if (!own_memory) continue;
        EXPECT_THAT(std::vector(seen.device.query_starts, seen.device.query_starts + 3), ElementsAre(0, 3, 4));
        EXPECT_THAT(std::vector(seen.device.seq_lens, seen.device.seq_lens + 2), ElementsAre(3, 1));
        EXPECT_THAT(std::vector(seen.device.slot_mapping, seen.device.slot_mapping + 4),
                    ElementsAreArray(std::vector(seen.slot_mapping, seen.slot_mapping + 4)));
    }
}

TEST(PassInputs, BatchesOfOneBucketLieAtTheSameAddresses) {
    PlayedContext c;
    PassInputs part(c.context());
    ASSERT_TRUE(part.reserve({8, 8, 8, 64}));
    const GraphBucket bucket{GraphShape::kMixed, 8, 8, 4};
    std::vector<std::vector<const void*>> addresses;
    for (const std::vector<uint32_t>& sequences : {std::vector<uint32_t>{3, 1}, {1, 2, 2}}) {
        Batch batch = c.batch(sequences);
        batch.pad(bucket.tokens, bucket.sequences, bucket.logit_rows);
        const auto placed = part.place(batch, bucket);
        ASSERT_TRUE(placed) << placed.error();
        const pb_attention_batch& seen = part.attention(0);
        EXPECT_EQ(seen.graph, 1u);
        EXPECT_EQ(seen.max_query_len, 8u) << "of any batch that the graph is replayed for";
        EXPECT_EQ(seen.max_seq_len, 64u);
        addresses.push_back({placed->ids.data, placed->positions.data, placed->logit_rows.data,
                             seen.device.query_starts, seen.device.seq_lens, seen.device.block_starts,
                             seen.device.blocks, seen.device.slot_mapping, seen.device.positions});
    }
    EXPECT_EQ(addresses[0], addresses[1]);
}

TEST(PassInputs, HaveNoMemoryWhereNothingIsComputed) {
    PlayedContext c(false);
    PassInputs part(c.context());
    const auto placed = part.place(c.batch({3, 1}), std::nullopt);
    ASSERT_TRUE(placed) << placed.error();
    EXPECT_EQ(placed->ids.data, nullptr);
    EXPECT_EQ(placed->ids.shape[0], 4);
    EXPECT_EQ(placed->logit_rows.shape[0], 2);
}

}  // namespace
}  // namespace patchbay::runner::pass_inputs_test
