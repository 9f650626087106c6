#include "kv/kv_cache.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace patchbay::kv::kv_cache_test {
namespace {

std::vector<int32_t> tokens(int count, int first = 0) {
    std::vector<int32_t> v(static_cast<size_t>(count));
    std::iota(v.begin(), v.end(), first);
    return v;
}

// Computes `prompt` in a fresh table, as the engine does.
BlockTable computed(KvCache& cache, const std::vector<int32_t>& prompt) {
    BlockTable t;
    cache.prefixes().adopt(t, prompt);
    EXPECT_TRUE(cache.tables().grow(t, static_cast<uint32_t>(prompt.size())));
    cache.prefixes().cache_full_blocks(t, prompt);
    return t;
}

TEST(KvCache, GrowsByWholeBlocksAndReturnsThemAll) {
    KvCache cache(8, 4, PrefixCaching::kOn, "m");
    BlockTable t;
    ASSERT_TRUE(cache.tables().grow(t, 9));
    EXPECT_EQ(t.blocks, 3u);
    EXPECT_EQ(cache.pool().used(), 3u);
    EXPECT_EQ(cache.shape().capacity(t), 12u);
    cache.tables().release(t);
    EXPECT_EQ(cache.pool().free(), 8u);
}

TEST(KvCache, AnAllocationThatCannotBeMetChangesNothing) {
    KvCache cache(4, 4, PrefixCaching::kOn, "m");
    BlockTable a, b;
    ASSERT_TRUE(cache.tables().grow(a, 8));
    ASSERT_TRUE(cache.tables().grow(b, 4));
    EXPECT_FALSE(cache.tables().grow(b, 16));
    EXPECT_EQ(b.blocks, 1u);
    EXPECT_EQ(cache.pool().free(), 1u);
}

TEST(KvCache, WhatIsDiscardedIsTakenAgainBeforeCachedBlocks) {
    KvCache cache(4, 4, PrefixCaching::kOn, "m");
    BlockTable cached = computed(cache, tokens(12));
    BlockTable scratch;
    ASSERT_TRUE(cache.tables().fork(cached, 6, scratch));
    cache.tables().copy_on_write(scratch, 6);
    const BlockId own = scratch.pages[0][1];
    cache.tables().release(cached);
    cache.tables().discard(scratch); // shares a named block, which goes after the others
    EXPECT_EQ(cache.pool().free(), 4u);
    for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(cache.tables().grow(scratch, 4));
        EXPECT_EQ(scratch.pages[0][0], own) << i;
        cache.tables().discard(scratch);
    }
    EXPECT_EQ(cache.prefixes().count_cached(tokens(13)), 12u) << "all of it is still found";
    ASSERT_TRUE(cache.tables().grow(scratch, 16));
    EXPECT_EQ(cache.pool().cached(), 0u) << "the free list is whole";
    cache.tables().release(scratch);
    const BlockTable* none[] = {&scratch};
    EXPECT_TRUE(cache.audit(none));
}

TEST(KvCache, SharesFullBlocksButAlwaysLeavesATokenToCompute) {
    KvCache cache(16, 4, PrefixCaching::kOn, "m");
    const auto prompt = tokens(8);
    BlockTable a = computed(cache, prompt);
    EXPECT_EQ(cache.prefixes().count_cached(prompt), 4u); // the last token of the second is to be computed
    EXPECT_EQ(cache.prefixes().count_cached(tokens(9)), 8u);
    BlockTable b = computed(cache, tokens(12));
    EXPECT_EQ(b.pages[0][0], a.pages[0][0]);
    EXPECT_EQ(b.pages[0][1], a.pages[0][1]);
    EXPECT_EQ(cache.pool().references(a.pages[0][0]), 2u);
    EXPECT_EQ(cache.pool().used(), 3u);
}

TEST(KvCache, SharesNothingOfWhatItIsToForget) {
    KvCache cache(16, 4, PrefixCaching::kOn, "m");
    BlockTable a = computed(cache, tokens(12));
    EXPECT_EQ(cache.prefixes().count_cached(tokens(12)), 8u);
    cache.prefixes().forget(a);
    EXPECT_EQ(cache.prefixes().count_cached(tokens(12)), 0u);
    cache.tables().release(a);
    EXPECT_EQ(cache.prefixes().count_cached(tokens(12)), 0u);
    EXPECT_EQ(cache.pool().cached(), 0u);
    EXPECT_EQ(cache.pool().free(), 16u);
}

TEST(KvCache, AForkSharesPagesUntilOneIsWrittenTo) {
    KvCache cache(8, 4, PrefixCaching::kOff, "m");
    BlockTable a, b;
    ASSERT_TRUE(cache.tables().grow(a, 10));
    ASSERT_TRUE(cache.tables().fork(a, 9, b));
    EXPECT_EQ(b.pages, a.pages);
    EXPECT_EQ(b.held, 3u);
    EXPECT_EQ(cache.pool().used(), 3u);
    EXPECT_EQ(cache.tables().shared_pages(b, 9), 1u);
    EXPECT_EQ(cache.tables().fitting(b, 9, 100), 19u) << "of five free pages one is for the copy";
    cache.tables().copy_on_write(b, 9);
    const std::vector<PageCopy> copies(cache.copies().copies().begin(), cache.copies().copies().end());
    ASSERT_EQ(copies.size(), 1u);
    EXPECT_EQ(copies[0].from, a.pages[0][2]);
    EXPECT_EQ(copies[0].to, b.pages[0][2]);
    EXPECT_NE(copies[0].from, copies[0].to);
    EXPECT_EQ(cache.tables().shared_pages(a, 9) + cache.tables().shared_pages(b, 9), 0u);
    cache.tables().copy_on_write(a, 9);
    EXPECT_EQ(cache.copies().copies().size(), 1u) << "it is its own";
    cache.tables().release(a);
    EXPECT_EQ(cache.pool().used(), 3u);
    cache.tables().release(b);
    EXPECT_EQ(cache.pool().used(), 0u);
}

TEST(KvCache, WhatAForkWritesToIsNotFound) {
    KvCache cache(8, 4, PrefixCaching::kOn, "m");
    BlockTable a = computed(cache, tokens(8)), b;
    ASSERT_TRUE(cache.tables().fork(a, 6, b)); // the second page of a is full and named
    EXPECT_EQ(b.keys.size(), 1u);
    cache.tables().release(a);
    ASSERT_EQ(cache.prefixes().count_cached(tokens(9)), 8u);
    cache.tables().copy_on_write(b, 6);
    EXPECT_TRUE(cache.copies().copies().empty());
    EXPECT_EQ(cache.prefixes().count_cached(tokens(9)), 4u);
    cache.tables().release(b);
}

TEST(KvCache, AForkOfWhatIsNotThereChangesNothing) {
    KvCache windows(16, 4, PrefixCaching::kOff, "m", {{GroupKind::kFull, 0}, {GroupKind::kSliding, 4}});
    BlockTable a, b;
    ASSERT_TRUE(windows.tables().grow(a, 16));
    ASSERT_TRUE(windows.tables().fork(a, 15, b));
    windows.tables().release(b);
    windows.tables().free_outside_window(a, 14); // gives back what token 8 would see
    const uint32_t used = windows.pool().used();
    EXPECT_FALSE(windows.tables().fork(a, 8, b));
    EXPECT_FALSE(windows.tables().fork(a, 17, b)) << "it has no such tokens";
    ASSERT_TRUE(windows.tables().fork(a, 15, b));
    windows.tables().release(b);
    EXPECT_EQ(windows.pool().used(), used);
    KvCache states(16, 4, PrefixCaching::kOff, "m", {{GroupKind::kFull, 0}, {GroupKind::kRecurrent, 0}});
    BlockTable c, d;
    ASSERT_TRUE(states.tables().grow(c, 8));
    EXPECT_FALSE(states.tables().fork(c, 7, d)) << "a state is that of the latest token";
}

TEST(KvCache, TakesBlocksThatWereFreedButNotReused) {
    KvCache cache(8, 4, PrefixCaching::kOn, "m");
    BlockTable a = computed(cache, tokens(12));
    const auto kept = a.pages;
    cache.tables().release(a);
    EXPECT_EQ(cache.pool().cached(), 3u);
    BlockTable b;
    EXPECT_EQ(cache.prefixes().adopt(b, tokens(13)), 12u);
    EXPECT_EQ(b.pages, kept);
    EXPECT_EQ(cache.pool().cached(), 0u);
}

TEST(KvCache, ReusesDeeperBlocksOfARequestBeforeShallowerOnes) {
    KvCache cache(3, 4, PrefixCaching::kOn, "m");
    BlockTable a = computed(cache, tokens(12));
    cache.tables().release(a);
    BlockTable other;
    ASSERT_TRUE(cache.tables().grow(other, 4));
    EXPECT_EQ(cache.prefixes().count_cached(tokens(13)), 8u);
    EXPECT_EQ(cache.pool().eviction().evictions(), 1u);
    ASSERT_TRUE(cache.tables().grow(other, 8));
    EXPECT_EQ(cache.prefixes().count_cached(tokens(13)), 4u);
}

TEST(KvCache, AChainIsFoundFromItsBeginningOnly) {
    KvCache cache(8, 4, PrefixCaching::kOn, "m");
    computed(cache, tokens(8));
    std::vector<int32_t> other = tokens(9);
    other[0] = 99; // the second block holds the same tokens after another parent
    EXPECT_EQ(cache.prefixes().count_cached(other), 0u);
}

TEST(KvCache, KeepsTheFirstOfTwoEqualBlocks) {
    KvCache cache(8, 4, PrefixCaching::kOn, "m");
    BlockTable a, b; // both computed at once, without seeing each other
    ASSERT_TRUE(cache.tables().grow(a, 4));
    ASSERT_TRUE(cache.tables().grow(b, 4));
    cache.prefixes().cache_full_blocks(a, tokens(4));
    cache.prefixes().cache_full_blocks(b, tokens(4));
    BlockTable c;
    EXPECT_EQ(cache.prefixes().adopt(c, tokens(5)), 4u);
    EXPECT_EQ(c.pages[0][0], a.pages[0][0]);
    cache.tables().release(a);
    cache.tables().release(b);
    cache.tables().release(c);
    EXPECT_EQ(cache.pool().free(), 8u);
}

TEST(KvCache, FindsTheOtherOfTwoEqualBlocksWhenOneIsEvicted) {
    KvCache cache(4, 4, PrefixCaching::kOn, "m");
    BlockTable a, b, other;
    for (BlockTable* t : {&a, &b}) {
        ASSERT_TRUE(cache.tables().grow(*t, 4));
        cache.prefixes().cache_full_blocks(*t, tokens(4));
    }
    const BlockId kept = b.pages[0][0];
    cache.tables().release(a);
    ASSERT_TRUE(cache.tables().grow(other, 12)); // the two that were never used, and a's
    EXPECT_EQ(cache.pool().eviction().evictions(), 0u) << "what it holds can still be found";
    BlockTable c;
    ASSERT_EQ(cache.prefixes().adopt(c, tokens(5)), 4u);
    EXPECT_EQ(c.pages[0][0], kept);
    for (BlockTable* t : {&b, &c, &other}) cache.tables().release(*t);
    ASSERT_TRUE(cache.tables().grow(other, 16));
    EXPECT_EQ(cache.pool().eviction().evictions(), 1u);
    EXPECT_EQ(cache.prefixes().count_cached(tokens(5)), 0u);
    cache.tables().release(other);
    EXPECT_TRUE(cache.audit({}));
}

TEST(KvCache, FindsOfEqualBlocksOneThatIsInUse) {
    KvCache cache(4, 4, PrefixCaching::kOn, "m");
    BlockTable a, b, c;
    for (BlockTable* t : {&a, &b}) {
        ASSERT_TRUE(cache.tables().grow(*t, 4));
        cache.prefixes().cache_full_blocks(*t, tokens(4));
    }
    cache.tables().release(a);
    const uint32_t free = cache.pool().free();
    ASSERT_EQ(cache.prefixes().adopt(c, tokens(5)), 4u);
    EXPECT_EQ(cache.pool().free(), free) << "b has it";
    cache.tables().release(b);
    cache.tables().release(c);
}

TEST(KvCache, OffMeansNoSharing) {
    KvCache cache(8, 4, PrefixCaching::kOff, "m");
    computed(cache, tokens(8));
    EXPECT_EQ(cache.prefixes().count_cached(tokens(9)), 0u);
}

TEST(KvCache, ResetIsRefusedWhileBlocksAreInUse) {
    KvCache cache(8, 4, PrefixCaching::kOn, "m");
    BlockTable a = computed(cache, tokens(8));
    const auto refused = cache.prefixes().reset();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), "cannot reset the prefix cache: 2 blocks are in use");
    cache.tables().release(a);
    EXPECT_TRUE(cache.prefixes().reset());
    EXPECT_EQ(cache.prefixes().count_cached(tokens(9)), 0u);
    EXPECT_EQ(cache.pool().cached(), 0u);
}

}  // namespace
}  // namespace patchbay::kv::kv_cache_test
