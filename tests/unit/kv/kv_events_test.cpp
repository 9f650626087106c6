// What the prefix cache publishes, what a salt separates, what becomes zero, and how long pages are held.
#include <gmock/gmock.h>

#include <numeric>

#include "kv/kv_cache.hpp"

namespace patchbay::kv {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<int32_t> tokens(int count, int first = 0) {
    std::vector<int32_t> v(static_cast<size_t>(count));
    std::iota(v.begin(), v.end(), first);
    return v;
}

BlockTable computed(KvCache& cache, const std::vector<int32_t>& text, const BlockKey& salt = {}) {
    BlockTable t;
    cache.adopt_prefix(t, text, salt);
    EXPECT_TRUE(cache.grow(t, static_cast<uint32_t>(text.size())));
    cache.cache_full_blocks(t, text);
    return t;
}

std::vector<BlockId> zeroed(KvCache& cache, Way way = Way::kZeroPage) {
    std::vector<BlockId> out;
    for (const PageCopy& c : cache.copies())
        if (c.way == way) out.push_back(c.to);
    cache.forget_copies();
    return out;
}

TEST(CacheEvents, TellOfBlocksThatAreStoredInTheirChainAndOfThoseGivenUp) {
    KvCache cache(3, 4, PrefixCaching::kOn, "m");
    BlockTable before = computed(cache, tokens(4, 50));
    cache.release(before);
    cache.record_events();
    BlockTable t = computed(cache, tokens(9));
    const auto stored = cache.take_events();
    using Kind = CacheEvent::Kind;
    ASSERT_EQ(stored.size(), 3u);
    EXPECT_EQ(stored[0].kind, Kind::kRemoved) << "the third page was that of the text before";
    EXPECT_EQ(stored[1].kind, Kind::kStored);
    EXPECT_TRUE(stored[1].first);
    EXPECT_EQ(stored[1].tokens, tokens(4));
    EXPECT_FALSE(stored[2].first);
    EXPECT_EQ(stored[2].parent, stored[1].key);
    EXPECT_EQ(stored[2].tokens, tokens(4, 4));
    cache.release(t);
    EXPECT_THAT(cache.take_events(), IsEmpty()) << "they can still be found";
    BlockTable again = computed(cache, tokens(9));
    EXPECT_THAT(cache.take_events(), IsEmpty()) << "nothing is new";
    cache.release(again);
    BlockTable other = computed(cache, tokens(9, 100));
    std::vector<BlockKey> removed;
    for (const CacheEvent& e : cache.take_events())
        if (e.kind == Kind::kRemoved) removed.push_back(e.key);
    EXPECT_EQ(removed, (std::vector<BlockKey>{stored[2].key, stored[1].key})) << "the deeper one first";
    cache.release(other);
    ASSERT_TRUE(cache.reset_prefixes());
    const auto cleared = cache.take_events();
    ASSERT_EQ(cleared.size(), 1u);
    EXPECT_EQ(cleared[0].kind, Kind::kCleared);
}

TEST(CacheEvents, TellOfBlocksWhoseNamesAreForgotten) {
    KvCache cache(4, 4, PrefixCaching::kOn, "m");
    cache.record_events();
    BlockTable t = computed(cache, tokens(9));
    const auto stored = cache.take_events();
    cache.forget(t);
    const auto gone = cache.take_events();
    ASSERT_EQ(gone.size(), 2u) << "the third block never had a name";
    for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(gone[i].kind, CacheEvent::Kind::kRemoved);
        EXPECT_EQ(gone[i].key, stored[i].key);
    }
    cache.release(t);
}

TEST(CacheEvents, TellOnceOfTwoEqualBlocks) {
    KvCache cache(4, 4, PrefixCaching::kOn, "m");
    cache.record_events();
    BlockTable a, b, other;
    for (BlockTable* t : {&a, &b}) {
        ASSERT_TRUE(cache.grow(*t, 4));
        cache.cache_full_blocks(*t, tokens(4));
    }
    EXPECT_EQ(cache.take_events().size(), 1u);
    cache.release(a);
    ASSERT_TRUE(cache.grow(other, 12));
    EXPECT_THAT(cache.take_events(), IsEmpty()) << "b has it";
    cache.forget(b);
    EXPECT_EQ(cache.take_events().size(), 1u);
    cache.release(b);
    cache.release(other);
}

TEST(CacheSalt, KeepsEqualTextsApart) {
    KvCache cache(16, 4, PrefixCaching::kOn, "m");
    const BlockKey a = root_key("a"), b = root_key("b");
    BlockTable t = computed(cache, tokens(9), a);
    EXPECT_EQ(cache.count_cached(tokens(9), a), 8u);
    EXPECT_EQ(cache.count_cached(tokens(9), b), 0u);
    EXPECT_EQ(cache.count_cached(tokens(9)), 0u);
    BlockTable plain = computed(cache, tokens(9));
    EXPECT_EQ(cache.count_cached(tokens(9)), 8u);
    EXPECT_NE(plain.pages[0][0], t.pages[0][0]);
    cache.release(t);
    cache.release(plain);
}

TEST(CacheSalt, StaysWithAForkAndInHostMemory) {
    KvCache cache(16, 4, PrefixCaching::kOn, "m", {GroupSpec{}}, 8);
    const BlockKey salt = root_key("a");
    BlockTable t = computed(cache, tokens(9), salt), fork;
    ASSERT_TRUE(cache.fork(t, 8, fork));
    EXPECT_EQ(fork.salt, salt);
    SwappedTable out;
    ASSERT_TRUE(cache.swap_out(t, 9, out));
    cache.forget_copies();
    ASSERT_TRUE(cache.swap_in(out, tokens(9), 9, t));
    EXPECT_EQ(t.salt, salt);
    EXPECT_EQ(cache.copies().size(), 1u) << "two of three blocks are the fork's";
    cache.drop(out);
    cache.release(t);
    cache.release(fork);
}

TEST(ZeroFreed, PagesThatNobodyHoldsOrFindsAnyMore) {
    KvCache cache(4, 4, PrefixCaching::kOn, "m", {GroupSpec{}}, 4);
    cache.zero_freed();
    BlockTable t = computed(cache, tokens(6)), shared;
    const auto pages = t.pages[0];
    ASSERT_TRUE(cache.fork(t, 6, shared));
    cache.release(t);
    EXPECT_THAT(zeroed(cache), IsEmpty()) << "another one holds them";
    cache.release(shared);
    EXPECT_THAT(zeroed(cache), ElementsAre(pages[1])) << "the full one can be found";
    BlockTable all;
    ASSERT_TRUE(cache.grow(all, 16));
    EXPECT_THAT(zeroed(cache), ElementsAre(pages[0])) << "before another request gets it";
    cache.release(all);
    EXPECT_EQ(zeroed(cache).size(), 4u);
}

TEST(ZeroFreed, SlotsBehindTheCopyOutOfThemAndCachedPagesAtAReset) {
    KvCache cache(4, 4, PrefixCaching::kOn, "m", {GroupSpec{}}, 4);
    cache.zero_freed();
    BlockTable t = computed(cache, tokens(8));
    const auto pages = t.pages[0];
    SwappedTable out;
    ASSERT_TRUE(cache.swap_out(t, 8, out));
    const auto slots = out.slots.pages[0];
    cache.drop(out);
    EXPECT_THAT(zeroed(cache, Way::kZeroSlot), UnorderedElementsAre(slots[0], slots[1]));
    ASSERT_TRUE(cache.reset_prefixes());
    EXPECT_THAT(zeroed(cache), UnorderedElementsAre(pages[0], pages[1]));
}

TEST(Residency, IsTheTimeThatAPageWasHeld) {
    KvCache cache(4, 4, PrefixCaching::kOff, "m");
    BlockTable t, fork;
    cache.set_time(100);
    ASSERT_TRUE(cache.grow(t, 4));
    cache.set_time(150);
    ASSERT_TRUE(cache.grow(t, 8));
    ASSERT_TRUE(cache.fork(t, 4, fork));
    cache.set_time(400);
    cache.release(t);
    EXPECT_THAT(cache.take_residencies(), ElementsAre(250u));
    cache.set_time(500);
    cache.release(fork);
    EXPECT_THAT(cache.take_residencies(), ElementsAre(400u));
    EXPECT_THAT(cache.take_residencies(), IsEmpty());
    ASSERT_TRUE(cache.grow(t, 4));
    ASSERT_TRUE(cache.grow(fork, 4));
    cache.discard(t); // in the step that took it: it says nothing about how long pages are held
    EXPECT_THAT(cache.take_residencies(), IsEmpty());
    cache.set_time(600);
    cache.discard(fork);
    EXPECT_THAT(cache.take_residencies(), ElementsAre(100u));
}

}  // namespace
}  // namespace patchbay::kv
