#include "kv/groups.hpp"

#include <gmock/gmock.h>

#include "kv/kv_cache.hpp"

namespace patchbay::kv::groups_test {
namespace {

using ::testing::ElementsAre;

constexpr uint32_t kBlock = 16;

LayerKv full(uint64_t bytes = 64) { return {{GroupKind::kFull, 0}, 2, 16, bytes, "paged"}; }
LayerKv sliding(uint32_t window, uint64_t bytes = 64) { return {{GroupKind::kSliding, window}, 2, 16, bytes, "paged"}; }
LayerKv state(uint64_t bytes) { return {{GroupKind::kRecurrent, 0}, 0, 0, bytes, "state"}; }

std::vector<uint32_t> groups_of(const Grouping& g) {
    std::vector<uint32_t> out;
    for (const LayerPlace& place : g.layers) out.push_back(place.group);
    return out;
}

TEST(Groups, LayersThatKeepTheSameShareAPage) {
    const Grouping g = group_layers(std::vector<LayerKv>(3, full()), kBlock);
    EXPECT_EQ(g.groups, std::vector<GroupSpec>(1));
    EXPECT_EQ(g.page_bytes, 192u);
    EXPECT_THAT(groups_of(g), ElementsAre(0, 0, 0));
    EXPECT_EQ(g.layers[2].offset, 128u);
    EXPECT_EQ(g.padding, 0);
}

TEST(Groups, AsManyLocalAsGlobalLayersMakeTwoGroupsWithoutWaste) {
    std::vector<LayerKv> layers;
    for (int i = 0; i < 4; ++i) layers.insert(layers.end(), {sliding(64), full()});
    const Grouping g = group_layers(layers, kBlock);
    EXPECT_THAT(groups_of(g), ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
    EXPECT_EQ(g.page_bytes, 4u * 64);
    EXPECT_EQ(g.padding, 0);
}

TEST(Groups, AFormWithMoreLayersThanAPageHoldsMakesSeveralGroups) {
    std::vector<LayerKv> layers; // five local ones, then a global one, four times
    for (int i = 0; i < 24; ++i) layers.push_back(i % 6 == 5 ? full() : sliding(512));
    const Grouping g = group_layers(layers, kBlock);
    EXPECT_EQ(g.page_bytes, 5u * 64);
    ASSERT_EQ(g.groups.size(), 5u); // 20 local layers by 5, and 4 global ones
    EXPECT_GT(g.padding, 0);
    EXPECT_LE(g.padding, kMaxPadding);
    std::vector<std::vector<uint64_t>> offsets(5);
    for (size_t i = 0; i < layers.size(); ++i) {
        EXPECT_EQ(g.groups[g.layers[i].group], layers[i].spec);
        offsets[g.layers[i].group].push_back(g.layers[i].offset);
    }
    for (size_t i = 0; i < 4; ++i) EXPECT_THAT(offsets[i], ElementsAre(0, 64, 128, 192, 256));
    EXPECT_THAT(offsets[4], ElementsAre(0, 64, 128, 192));
}

TEST(Groups, LittlePaddingBuysFewerGroups) {
    std::vector<LayerKv> layers(20, full());
    layers.resize(39, sliding(4096)); // 19 of them: a group of 19 in pages for 20
    const Grouping g = group_layers(layers, kBlock);
    EXPECT_EQ(g.groups.size(), 2u);
    EXPECT_NEAR(g.padding, 1.0 / 40, 1e-9);
}

TEST(Groups, LayersOfOtherShapesOrTagsDoNotShare) {
    LayerKv other = full();
    other.layout_tag = "rows";
    const std::vector<LayerKv> layers = {full(), full(128), other, sliding(8), sliding(9)};
    const Grouping g = group_layers(layers, kBlock);
    EXPECT_EQ(g.groups.size(), 5u);
    EXPECT_EQ(g.page_bytes, 128u);
}

TEST(Groups, ALayerThatKeepsNothingLiesWhereItsOwnerDoes) {
    std::vector<LayerKv> layers = {full(), sliding(64), full(), sliding(64)};
    const Grouping before = group_layers(layers, kBlock);
    for (const uint32_t owner : {3u, 2u, 2u}) {
        layers.push_back(layers[owner]);
        layers.back().owner = owner;
    }
    const Grouping g = group_layers(layers, kBlock);
    EXPECT_EQ(g.page_bytes, before.page_bytes);
    EXPECT_EQ(g.groups, before.groups);
    for (const auto& [layer, owner] : {std::pair{4, 3}, {5, 2}, {6, 2}}) {
        EXPECT_EQ(g.layers[size_t(layer)].group, g.layers[size_t(owner)].group);
        EXPECT_EQ(g.layers[size_t(layer)].offset, g.layers[size_t(owner)].offset);
    }
}

TEST(Groups, StatesComeLastAndTellWhichBlocksWouldFitThem) {
    const std::vector<LayerKv> layers = {state(4096), full(128), state(4096)};
    const Grouping g = group_layers(layers, kBlock);
    EXPECT_THAT(groups_of(g), ElementsAre(1, 0, 2)); // rather than two states in a page, which blocks would pay for
    EXPECT_EQ(g.groups.back().kind, GroupKind::kRecurrent);
    EXPECT_GT(g.padding, 0.9);
    EXPECT_EQ(g.better_block_size, 32 * kBlock);
    const Grouping better = group_layers(std::vector<LayerKv>{state(4096), full(32 * 128), state(4096)}, 32 * kBlock);
    EXPECT_EQ(better.padding, 0);
    EXPECT_EQ(better.better_block_size, 0u);
}

TEST(Groups, TheLongestSequenceCountsWindowsAndStatesOnce) {
    const GroupSpec all{}, window{GroupKind::kSliding, 32}, recurrent{GroupKind::kRecurrent, 0};
    const auto longest = [](std::vector<GroupSpec> groups, uint32_t pages, Computed how = Computed::kInChunks) {
        return longest_sequence(groups, kBlock, pages, how);
    };
    EXPECT_EQ(longest({all}, 10), 160u);
    EXPECT_EQ(longest({all, all}, 11), 80u);
    EXPECT_EQ(longest({all, window}, 10), 7 * 16u); // a window of 32 touches 3 blocks
    EXPECT_EQ(longest({all, window}, 10, Computed::kAtOnce), 80u);
    EXPECT_EQ(longest({window}, 3), UINT64_MAX);
    EXPECT_EQ(longest({window}, 2), 32u);
    EXPECT_EQ(longest({all, recurrent, recurrent}, 10), 128u);
    EXPECT_EQ(longest({recurrent}, 1), UINT64_MAX);
    EXPECT_EQ(longest({recurrent, recurrent}, 1), 0u);
}

// ---- block tables over groups ----------------------------------------------------------------

std::vector<int32_t> tokens(int count) {
    std::vector<int32_t> v;
    for (int i = 0; i < count; ++i) v.push_back(i);
    return v;
}

const GroupSpec kFull{}, kWindow{GroupKind::kSliding, 6}, kState{GroupKind::kRecurrent, 0};

BlockTable computed(KvCache& cache, const std::vector<int32_t>& prompt) {
    BlockTable t;
    const uint32_t hit = cache.prefixes().adopt(t, prompt);
    EXPECT_TRUE(cache.tables().grow(t, static_cast<uint32_t>(prompt.size())));
    cache.prefixes().cache_full_blocks(t, prompt);
    EXPECT_LT(hit, prompt.size());
    return t;
}

TEST(KvGroups, ABlockOfTokensTakesAPageOfEachGroup) {
    KvCache cache(8, 4, PrefixCaching::kOn, "m", {kFull, kWindow});
    BlockTable t;
    ASSERT_TRUE(cache.tables().grow(t, 9));
    EXPECT_EQ(t.blocks, 3u);
    EXPECT_EQ(t.held, 6u);
    EXPECT_EQ(cache.used(GroupKind::kFull), 3u);
    EXPECT_EQ(cache.used(GroupKind::kSliding), 3u);
    EXPECT_FALSE(cache.tables().grow(t, 17)); // two blocks more need four pages
    EXPECT_EQ(t.blocks, 3u);
    EXPECT_EQ(cache.tables().fitting(t, 9, 20), 7u); // one block of two pages
    cache.tables().release(t);
    EXPECT_EQ(cache.pool().free(), 8u);
    EXPECT_EQ(cache.used(GroupKind::kSliding), 0u);
}

TEST(KvGroups, AWindowGivesBackWhatNoTokenToComeSees) {
    KvCache cache(16, 4, PrefixCaching::kOff, "m", {kFull, kWindow});
    BlockTable t;
    ASSERT_TRUE(cache.tables().grow(t, 16));
    cache.tables().free_outside_window(t, 8); // token 8 sees 3 to 8
    EXPECT_EQ(t.held, 8u);
    cache.tables().free_outside_window(t, 9); // token 9 sees 4 to 9
    EXPECT_EQ(t.held, 7u);
    EXPECT_EQ(t.pages[1][0], kNoBlock);
    EXPECT_NE(t.pages[0][0], kNoBlock);
    cache.tables().free_outside_window(t, 16); // 11 to 16
    EXPECT_EQ(cache.used(GroupKind::kSliding), 2u);
    EXPECT_EQ(cache.used(GroupKind::kFull), 4u);
    cache.tables().release(t);
    EXPECT_EQ(cache.pool().free(), 16u);
}

TEST(KvGroups, AWindowHitsWithItsLastBlocksOnly) {
    KvCache cache(8, 4, PrefixCaching::kOn, "m", {kWindow});
    BlockTable a = computed(cache, tokens(20));
    cache.tables().free_outside_window(a, 20);
    EXPECT_EQ(cache.pool().cached(), 3u);
    BlockTable other;
    ASSERT_TRUE(cache.tables().grow(other, 24)); // takes the blocks that were passed
    EXPECT_EQ(cache.pool().eviction().evictions(), 3u);
    BlockTable b;
    EXPECT_EQ(cache.prefixes().adopt(b, tokens(21)), 20u);
    EXPECT_EQ(b.held, 2u); // token 20 sees 15 to 20
    EXPECT_EQ(b.pages[0][2], kNoBlock);
    EXPECT_EQ(b.pages[0][3], a.pages[0][3]);
    EXPECT_EQ(cache.prefixes().count_cached(tokens(17)), 0u); // token 16 sees 11 to 16, and block 2 has gone
}

TEST(KvGroups, OfWhatAWindowHasPassedTheDeepestIsReusedFirst) {
    KvCache cache(8, 4, PrefixCaching::kOn, "m", {kWindow});
    BlockTable a = computed(cache, tokens(24)), other;
    cache.tables().free_outside_window(a, 24); // four of six blocks
    ASSERT_TRUE(cache.tables().grow(other, 16)); // the two that were never used, and two of those
    EXPECT_EQ(cache.prefixes().count_cached(tokens(9)), 8u);
    cache.tables().release(a);
    cache.tables().release(other);
}

TEST(KvGroups, AHitNeedsEveryGroup) {
    KvCache cache(10, 4, PrefixCaching::kOn, "m", {kFull, kWindow});
    BlockTable a = computed(cache, tokens(16));
    cache.tables().release(a); // the deepest blocks are the first to be reused
    BlockTable other;
    ASSERT_TRUE(cache.tables().grow(other, 4)); // the two that were never used
    EXPECT_EQ(cache.prefixes().count_cached(tokens(17)), 16u);
    ASSERT_TRUE(cache.tables().grow(other, 8));
    EXPECT_EQ(cache.prefixes().count_cached(tokens(17)), 12u);
    EXPECT_EQ(cache.pool().eviction().evictions(), 2u);
}

TEST(KvGroups, WhatOthersHoldTooDoesNotComeFree) {
    KvCache cache(12, 4, PrefixCaching::kOn, "m", {kFull, kWindow});
    BlockTable a = computed(cache, tokens(16));
    EXPECT_EQ(cache.tables().pages_freed_if_preempted(a), 8u);
    BlockTable b = computed(cache, tokens(16)); // shares three blocks; token 12 sees 7 to 12
    EXPECT_EQ(b.held, 3u + 2u + 2u);
    EXPECT_EQ(cache.tables().pages_freed_if_preempted(b), 2u);
    EXPECT_EQ(cache.tables().pages_freed_if_preempted(a), 8u - 5u);
    cache.tables().free_outside_window(a, 16);
    EXPECT_EQ(cache.pool().references(b.pages[1][2]), 2u);
    cache.tables().release(a);
    cache.tables().release(b);
    EXPECT_EQ(cache.pool().free(), 12u);
    EXPECT_EQ(cache.used(GroupKind::kFull) + cache.used(GroupKind::kSliding), 0u);
}

TEST(KvGroups, AStateIsOnePageOfASequenceAndPreventsSharing) {
    KvCache cache(8, 4, PrefixCaching::kOn, "m", {kState, kFull, kState});
    EXPECT_FALSE(cache.prefixes().enabled());
    EXPECT_EQ(cache.shape().state_pages(), 2u);
    BlockTable t;
    EXPECT_EQ(cache.tables().fitting(t, 0, 100), 24u); // six blocks beside two states
    ASSERT_TRUE(cache.tables().grow(t, 4));
    EXPECT_EQ(t.held, 3u);
    ASSERT_TRUE(cache.tables().grow(t, 8));
    EXPECT_EQ(t.held, 4u);
    EXPECT_EQ(cache.used(GroupKind::kRecurrent), 2u);
    BlockTable late;
    EXPECT_EQ(cache.tables().fitting(late, 0, 5), 5u);
    EXPECT_EQ(cache.tables().fitting(late, 0, 9), 8u);
    cache.tables().release(t);
    EXPECT_EQ(cache.pool().free(), 8u);
    EXPECT_EQ(cache.used(GroupKind::kRecurrent), 0u);
}

TEST(KvGroups, StatesAloneTakeNoPagesOfTokens) {
    KvCache cache(3, 4, PrefixCaching::kOff, "m", {kState, kState});
    BlockTable a, b;
    ASSERT_TRUE(cache.tables().grow(a, 1000));
    EXPECT_EQ(a.held, 2u);
    EXPECT_EQ(cache.tables().fitting(a, 1000, 1000), 1000u);
    EXPECT_EQ(cache.tables().fitting(b, 0, 1), 0u);
    EXPECT_FALSE(cache.tables().grow(b, 1));
    EXPECT_EQ(b.held, 0u);
}

}  // namespace
}  // namespace patchbay::kv::groups_test
