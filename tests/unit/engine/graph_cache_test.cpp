// Which graph a batch replays, why it replays none, and what the cache keeps.
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>

#include "runner/graph_cache.hpp"

namespace patchbay::runner::graph_cache_test {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

pb_graph* graph(uintptr_t n) { return reinterpret_cast<pb_graph*>(n); } // never looked into

constexpr BatchSize decodes(uint32_t sequences) { return {sequences, sequences, sequences, 1}; }

struct Made { // a cache, and what it has freed
    GraphSettings settings{.mode = GraphMode::kFull};
    GraphScope scope{.device = true, .attention = PB_GRAPHS_ANY, .max_num_seqs = 16, .max_num_batched_tokens = 512};
    std::vector<pb_graph*> freed;

    std::unique_ptr<GraphCache> make() {
        return std::make_unique<GraphCache>(settings, scope, [this](pb_graph* g) { freed.push_back(g); });
    }
    GraphMiss miss(const BatchSize& batch) { return make()->choose(batch).miss; }
};

TEST(GraphCache, HasTheSizesThatVllmHas) {
    const auto sizes = default_graph_sizes();
    EXPECT_EQ(sizes.size(), 3u + 31 + 17);
    EXPECT_THAT(std::vector(sizes.begin(), sizes.begin() + 6), ElementsAre(1, 2, 4, 8, 16, 24));
    const auto at256 = std::find(sizes.begin(), sizes.end(), 256u);
    EXPECT_THAT(std::vector(at256 - 1, at256 + 2), ElementsAre(248, 256, 272));
    EXPECT_EQ(sizes.back(), 512u);
}

TEST(GraphCache, PadsADecodeToTheNextSizeAndHasARowForEachSequence) {
    Made made;
    const auto cache = made.make();
    const auto choice = cache->choose(decodes(5));
    EXPECT_EQ(choice.miss, GraphMiss::kNotCaptured);
    ASSERT_TRUE(choice.bucket);
    EXPECT_EQ(choice.bucket->shape, GraphShape::kDecode);
    EXPECT_EQ(choice.bucket->tokens, 8u);
    EXPECT_EQ(choice.bucket->sequences, 8u);
    EXPECT_EQ(choice.bucket->logit_rows, 8u);
    cache->add(*choice.bucket, {graph(1), 10, {0, 1}});
    const auto again = cache->choose(decodes(7));
    EXPECT_EQ(again.miss, GraphMiss::kNone);
    ASSERT_TRUE(again.graph);
    EXPECT_EQ(again.graph->graph, graph(1));
    EXPECT_EQ(cache->choose(decodes(9)).miss, GraphMiss::kNotCaptured) << "another size";
    EXPECT_EQ(cache->choose({8, 7, 7, 2}).miss, GraphMiss::kNotCaptured) << "as many tokens, and no decode";
}

TEST(GraphCache, GivesMixedBatchesTheLogitsThatAStepCanAskFor) {
    Made made;
    made.scope.rows_per_sequence = 2;
    const auto choice = made.make()->choose({100, 3, 3, 50});
    ASSERT_TRUE(choice.bucket);
    EXPECT_EQ(choice.bucket->tokens, 104u);
    EXPECT_EQ(choice.bucket->sequences, 104u);
    EXPECT_EQ(choice.bucket->logit_rows, 32u); // 16 sequences with a draft each
    EXPECT_EQ(made.miss({100, 40, 40, 50}), GraphMiss::kTooLarge);
}

TEST(GraphCache, SaysWhyABatchRunsWithoutAGraph) {
    const BatchSize mixed{100, 3, 3, 50};
    const auto with = [](auto&& change) {
        Made made;
        change(made);
        return made;
    };
    EXPECT_EQ(with([](Made& m) { m.scope.device = false; m.settings.mode = GraphMode::kNone; }).miss(decodes(1)),
              GraphMiss::kDevice);
    EXPECT_EQ(with([](Made& m) { m.settings.mode = GraphMode::kNone; }).miss(decodes(1)), GraphMiss::kDisabled);
    EXPECT_EQ(with([](Made& m) { m.scope.attention = PB_GRAPHS_NONE; }).miss(decodes(1)), GraphMiss::kUnsupported);
    EXPECT_EQ(with([](Made& m) { m.scope.attention = PB_GRAPHS_DECODE; }).miss(mixed), GraphMiss::kUnsupported);
    EXPECT_EQ(with([](Made& m) { m.scope.attention = PB_GRAPHS_DECODE; }).miss(decodes(1)), GraphMiss::kNotCaptured);
    EXPECT_EQ(with([](Made& m) { m.settings.mode = GraphMode::kFullDecodeOnly; }).miss(mixed), GraphMiss::kMixedBatch);
    EXPECT_EQ(with([](Made& m) { m.settings.sizes = {4, 2}; }).miss(decodes(5)), GraphMiss::kTooLarge);
    EXPECT_EQ(with([](Made& m) { m.settings.sizes = {4, 2}; }).miss(decodes(4)), GraphMiss::kNotCaptured);
    EXPECT_EQ(with([](Made& m) { m.scope.max_num_batched_tokens = 99; }).miss(mixed), GraphMiss::kTooLarge);
    for (int i = 1; i <= static_cast<int>(GraphMiss::kNotCaptured); ++i)
        EXPECT_FALSE(name_of(static_cast<GraphMiss>(i)).empty());
}

std::vector<uint32_t> sizes_of(const std::vector<GraphBucket>& buckets, GraphShape shape) {
    std::vector<uint32_t> out;
    for (const GraphBucket& b : buckets)
        if (b.shape == shape) out.push_back(b.tokens);
    return out;
}

TEST(GraphCache, CapturesWhatStepsCanBeTheLargestFirst) {
    Made made;
    made.settings.sizes = {1, 4, 8, 16, 24, 32, 40, 4};
    made.scope.max_num_seqs = 20; // of the sizes above 24 holds them all
    made.scope.max_num_batched_tokens = 32;
    const auto cache = made.make();
    EXPECT_THAT(sizes_of(cache->missing(), GraphShape::kDecode), ElementsAre(24, 16, 8, 4, 1));
    EXPECT_THAT(sizes_of(cache->missing(), GraphShape::kMixed), ElementsAre(32, 24, 16, 8, 4, 1));
    EXPECT_EQ(cache->max_tokens(), 32u);
    made.settings.mode = GraphMode::kFullDecodeOnly;
    EXPECT_THAT(sizes_of(made.make()->missing(), GraphShape::kMixed), ElementsAre());
    EXPECT_EQ(made.make()->max_tokens(), 24u);
    made.scope.device = false;
    EXPECT_THAT(made.make()->missing(), ElementsAre());
    EXPECT_EQ(made.make()->max_tokens(), 0u);
}

TEST(GraphCache, KeepsNoGraphPastItsLimitAndDoesNotTryThatSizeAgain) {
    Made made;
    made.settings.memory_limit = 25;
    const auto cache = made.make();
    const auto add = [&](uint32_t sequences, uintptr_t n, uint64_t bytes) {
        cache->add(*cache->choose(decodes(sequences)).bucket, {graph(n), bytes, {}});
    };
    add(8, 1, 15);
    add(4, 2, 11);
    EXPECT_THAT(made.freed, ElementsAre(graph(2)));
    EXPECT_EQ(cache->bytes(), 15u);
    EXPECT_EQ(cache->count(), 1u);
    EXPECT_EQ(cache->choose(decodes(4)).miss, GraphMiss::kNotCaptured);
    EXPECT_FALSE(cache->choose(decodes(4)).bucket) << "nothing is to be captured";
    add(2, 3, 10);
    EXPECT_EQ(cache->bytes(), 25u);
    cache->refuse(*cache->choose(decodes(1)).bucket);
    EXPECT_FALSE(cache->choose(decodes(1)).bucket);
}

// A collective needs the same rows on every rank, and one of them may have had no memory for this graph.
TEST(GraphCache, PadsAsOtherRanksDoWhatOnlyItselfCouldNotCapture) {
    Made made;
    made.scope.ranks = 2;
    const auto cache = made.make();
    cache->refuse(*cache->choose(decodes(3)).bucket);
    const GraphChoice choice = cache->choose(decodes(3));
    EXPECT_EQ(choice.miss, GraphMiss::kNotCaptured);
    EXPECT_EQ(choice.graph, nullptr);
    ASSERT_TRUE(choice.bucket);
    EXPECT_EQ(choice.bucket->tokens, 4u);
    EXPECT_TRUE(choice.refused) << "it is not tried again";
}

TEST(GraphCache, FreesAllWhenAPluginUnderThemGoes) {
    Made made;
    {
        const auto cache = made.make();
        cache->add(*cache->choose(decodes(8)).bucket, {graph(1), 15, {}});
        cache->add(*cache->choose(decodes(4)).bucket, {graph(2), 11, {}});
        cache->refuse(*cache->choose(decodes(1)).bucket);
        cache->invalidate();
        EXPECT_THAT(made.freed, UnorderedElementsAre(graph(1), graph(2)));
        EXPECT_EQ(cache->bytes(), 0u);
        EXPECT_TRUE(cache->choose(decodes(8)).bucket) << "it is captured again";
        EXPECT_TRUE(cache->choose(decodes(1)).bucket) << "what was refused may be possible now";
        cache->add(*cache->choose(decodes(8)).bucket, {graph(3), 15, {}});
    }
    EXPECT_THAT(made.freed, UnorderedElementsAre(graph(1), graph(2), graph(3))) << "the last with the cache";
}

}  // namespace
}  // namespace patchbay::runner::graph_cache_test
