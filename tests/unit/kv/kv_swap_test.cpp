// Pages out to slots of the swap space and back: what is copied, what is shared again, and that what cannot be met
// changes nothing.
#include <gtest/gtest.h>

#include <numeric>

#include "kv/kv_cache.hpp"

namespace patchbay::kv::kv_swap_test {
namespace {

std::vector<int32_t> tokens(int count, int first = 0) {
    std::vector<int32_t> v(static_cast<size_t>(count));
    std::iota(v.begin(), v.end(), first);
    return v;
}

KvCache cache_of(uint32_t blocks, uint32_t slots, PrefixCaching caching = PrefixCaching::kOff,
                 std::vector<GroupSpec> groups = {GroupSpec{}}) {
    return KvCache(blocks, 4, caching, "m", std::move(groups), slots);
}

BlockTable grown(KvCache& cache, uint32_t count) {
    BlockTable t;
    EXPECT_TRUE(cache.tables().grow(t, count));
    return t;
}

TEST(KvSwap, PagesOfComputedTokensBecomeSlotsAndAllAreGivenBack) {
    KvCache cache = cache_of(8, 5);
    BlockTable t = grown(cache, 20);
    const std::vector<BlockId> pages = t.pages[0];
    SwappedTable out;
    ASSERT_TRUE(cache.swap().out(t, 9, out));
    EXPECT_EQ(cache.pool().free(), 8u);
    EXPECT_EQ(cache.swap().space().used(), 3u) << "two blocks had no computed token";
    ASSERT_EQ(cache.copies().copies().size(), 3u);
    for (size_t i = 0; i < 3; ++i)
        EXPECT_EQ(cache.copies().copies()[i], (PageCopy{out.slots.pages[0][i], pages[i], Way::kToHost}));
    EXPECT_EQ(out.tokens, 9u);
    cache.swap().drop(out);
    EXPECT_EQ(cache.swap().space().free(), 5u);
    EXPECT_TRUE(out.empty());
}

TEST(KvSwap, WithoutEnoughSlotsNothingChanges) {
    KvCache cache = cache_of(8, 2);
    BlockTable t = grown(cache, 9);
    SwappedTable out;
    EXPECT_FALSE(cache.swap().out(t, 9, out));
    EXPECT_TRUE(out.empty());
    EXPECT_TRUE(cache.copies().copies().empty());
    EXPECT_EQ(t.held, 3u);
    EXPECT_EQ(cache.swap().space().free(), 2u);
    EXPECT_EQ(cache.pool().used(), 3u);
}

TEST(KvSwap, ComesBackWithRoomForMoreOrNotAtAll) {
    KvCache cache = cache_of(4, 4);
    BlockTable t = grown(cache, 8);
    SwappedTable out;
    ASSERT_TRUE(cache.swap().out(t, 8, out));
    cache.copies().clear();
    BlockTable other = grown(cache, 5); // two pages are left
    EXPECT_FALSE(cache.swap().in(out, tokens(9), 9, t));
    EXPECT_TRUE(cache.copies().copies().empty());
    EXPECT_EQ(t.held, 0u);
    EXPECT_EQ(cache.pool().free(), 2u);
    cache.tables().release(other);
    ASSERT_TRUE(cache.swap().in(out, tokens(9), 9, t));
    EXPECT_EQ(t.blocks, 3u);
    EXPECT_EQ(t.held, 3u);
    ASSERT_EQ(cache.copies().copies().size(), 2u);
    for (size_t i = 0; i < 2; ++i)
        EXPECT_EQ(cache.copies().copies()[i], (PageCopy{t.pages[0][i], out.slots.pages[0][i], Way::kToDevice}));
    EXPECT_EQ(cache.swap().space().used(), 2u) << "until it is sure that they are not needed";
}

TEST(KvSwap, BlocksThatCanStillBeFoundAreSharedAndNotCopied) {
    KvCache cache = cache_of(6, 6, PrefixCaching::kOn);
    const auto text = tokens(12);
    BlockTable t = grown(cache, 12);
    cache.prefixes().cache_full_blocks(t, text);
    const std::vector<BlockId> pages = t.pages[0];
    SwappedTable out;
    ASSERT_TRUE(cache.swap().out(t, 12, out));
    BlockTable other = grown(cache, 16); // takes the three that were never used, and the deepest of the text
    cache.copies().clear();
    ASSERT_FALSE(cache.swap().in(out, text, 12, t)) << "one page is lacking";
    EXPECT_EQ(cache.pool().free(), 2u);
    cache.tables().release(other);
    ASSERT_TRUE(cache.swap().in(out, text, 12, t));
    EXPECT_EQ(cache.copies().copies().size(), 1u);
    EXPECT_EQ(t.pages[0][0], pages[0]);
    EXPECT_EQ(t.pages[0][1], pages[1]);
    cache.prefixes().cache_full_blocks(t, text);
    EXPECT_EQ(t.keys.size(), 3u);
    EXPECT_EQ(cache.prefixes().count_cached(tokens(13)), 12u) << "what came back can be found again";
}

TEST(KvSwap, WindowsAndStatesGoWithTheRest) {
    const std::vector<GroupSpec> groups = {{GroupKind::kFull, 0}, {GroupKind::kSliding, 6}, {GroupKind::kRecurrent, 0}};
    KvCache cache = cache_of(20, 20, PrefixCaching::kOff, groups);
    BlockTable t = grown(cache, 20);
    cache.tables().free_outside_window(t, 18);
    const uint32_t held = t.held;
    EXPECT_EQ(held, 5u + 2u + 1u);
    SwappedTable out;
    ASSERT_TRUE(cache.swap().out(t, 18, out));
    EXPECT_EQ(cache.copies().copies().size(), held);
    EXPECT_EQ(cache.pool().used(), 0u);
    cache.copies().clear();
    ASSERT_TRUE(cache.swap().in(out, tokens(20), 19, t));
    EXPECT_EQ(cache.copies().copies().size(), held);
    EXPECT_EQ(t.freed_prefix, (std::vector<uint32_t>{0, 3, 0}));
    EXPECT_EQ(t.pages[1][2], kNoBlock);
    EXPECT_EQ(cache.used(GroupKind::kRecurrent), 1u);
    EXPECT_EQ(cache.used(GroupKind::kSliding), 2u);
    cache.swap().drop(out);
    cache.tables().release(t);
    EXPECT_EQ(cache.pool().used(), 0u);
    EXPECT_EQ(cache.swap().space().used(), 0u);
}

}  // namespace
}  // namespace patchbay::kv::kv_swap_test
