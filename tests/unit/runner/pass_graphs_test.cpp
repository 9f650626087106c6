// Graphs of passes on a device that a test plays.
#include "runner/pass_graphs.hpp"

#include <gmock/gmock.h>

#include "played_context.hpp"

namespace patchbay::runner::pass_graphs_test {
namespace {

using testing::PlayedContext;
using testing::with_graphs;
using ::testing::ElementsAre;

const auto kWell = [] { return Result<>(); };

struct Bench {
    Bench() { part.open(with_graphs()); }
    void capture(const GraphBucket& bucket) {
        pb_graph* graph = nullptr;
        const auto recorded = part.record(kWell, graph);
        part.keep(bucket, graph, recorded, {0});
    }
    PlayedContext c;
    PassGraphs part{c.context()};
};

TEST(PassGraphs, AGraphThatWasKeptFitsTheBatchesOfItsBucket) {
    Bench b;
    const GraphChoice first = b.part.choose(b.c.batch({1, 1, 1}));
    ASSERT_TRUE(first.bucket);
    EXPECT_EQ(first.graph, nullptr);
    EXPECT_EQ(first.miss, GraphMiss::kNotCaptured);
    EXPECT_EQ(first.bucket->tokens, 4u);
    EXPECT_EQ(b.part.padded().tokens(), 4u);
    b.capture(*first.bucket);
    EXPECT_EQ(b.part.cache().bytes(), 100u) << "as the device says";
    for (const std::vector<uint32_t>& sequences : {std::vector<uint32_t>{1, 1, 1}, {1, 1, 1, 1}}) {
        const GraphChoice again = b.part.choose(b.c.batch(sequences));
        ASSERT_NE(again.graph, nullptr);
        EXPECT_THAT(again.graph->layers, ElementsAre(0));
        EXPECT_EQ(b.part.padded().tokens(), 4u);
    }
    EXPECT_EQ(b.part.choose(b.c.batch({1})).graph, nullptr) << "of another bucket";
}

TEST(PassGraphs, ABucketWhoseRecordingFailsIsLeftAlone) {
    Bench b;
    const GraphBucket bucket = *b.part.choose(b.c.batch({1, 1})).bucket;
    pb_graph* graph = nullptr;
    const auto recorded = b.part.record([] { return Result<>(fail("it cannot be captured")); }, graph);
    EXPECT_EQ(recorded.error(), "it cannot be captured");
    EXPECT_THAT(b.c.device.fake.calls, ElementsAre("graph_begin", "graph_end")) << "the recording was ended";
    b.part.keep(bucket, graph, recorded, {});
    EXPECT_EQ(b.c.device.fake.graphs, 0u) << "what there was of it is freed";
    EXPECT_FALSE(b.part.choose(b.c.batch({1, 1})).bucket);
    EXPECT_TRUE(b.part.choose(b.c.batch({1, 1, 1})).bucket) << "others are not";
}

TEST(PassGraphs, AllAreDroppedWhenAPluginIsAnotherOne) {
    Bench b;
    const Batch batch = b.c.batch({1, 1});
    b.capture(*b.part.choose(batch).bucket);
    ASSERT_NE(b.part.choose(batch).graph, nullptr);
    b.part.renew();
    EXPECT_EQ(b.c.device.fake.graphs, 0u);
    EXPECT_EQ(b.part.choose(batch).graph, nullptr);
    b.capture(*b.part.choose(batch).bucket);
    b.part.invalidate();
    EXPECT_EQ(b.c.device.fake.graphs, 0u);
    EXPECT_TRUE(b.part.choose(batch).bucket) << "it may be captured again";
}

TEST(PassGraphs, NoneHasHiddenStates) {
    Bench b;
    Batch batch = b.c.batch({1, 1});
    b.capture(*b.part.choose(batch).bucket);
    batch.want_hidden({0, 1});
    const GraphChoice choice = b.part.choose(batch);
    EXPECT_EQ(choice.graph, nullptr);
    EXPECT_EQ(choice.miss, GraphMiss::kHiddenStates);
    EXPECT_FALSE(choice.bucket) << "nothing is padded in vain";
}

TEST(PassGraphs, ThereAreNoneBeforeTheyAreOpenedOrWhereABatchIsNotBounded) {
    PlayedContext c;
    PassGraphs part(c.context());
    EXPECT_FALSE(part.choose(c.batch({1})).bucket);
    RunnerSettings s = with_graphs();
    EXPECT_EQ(max_padded_tokens(s, c.device.opened), 8u);
    s.max_num_seqs = 0;
    part.open(s);
    EXPECT_FALSE(part.choose(c.batch({1})).bucket);
    EXPECT_EQ(max_padded_tokens(s, c.device.opened), 0u);
}

TEST(PassGraphs, ABlankBatchIsPaddingAlone) {
    Bench b;
    const Batch& blank = b.part.blank({GraphShape::kDecode, 4, 4, 4});
    EXPECT_EQ(blank.tokens(), 4u);
    EXPECT_EQ(blank.sequences(), 4u);
    for (const int64_t slot : blank.pages().slots(0)) EXPECT_EQ(slot, -1) << "it writes none";
}

}  // namespace
}  // namespace patchbay::runner::pass_graphs_test
