// What the prefix cache publishes, what a salt separates, what becomes zero, and how long pages are held.
#include <gmock/gmock.h>

#include <numeric>

#include "kv/kv_cache.hpp"

namespace patchbay::kv::kv_events_test {
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
    cache.prefixes().adopt(t, text, salt);
    EXPECT_TRUE(cache.tables().grow(t, static_cast<uint32_t>(text.size())));
    cache.prefixes().cache_full_blocks(t, text);
    return t;
}

std::vector<BlockId> zeroed(KvCache& cache, Way way = Way::kZeroPage) {
    std::vector<BlockId> out;
    for (const PageCopy& c : cache.copies().copies())
        if (c.way == way) out.push_back(c.to);
    cache.copies().clear();
    return out;
}

TEST(CacheEvents, TellOfBlocksThatAreStoredInTheirChainAndOfThoseGivenUp) {
    KvCache cache(3, 4, PrefixCaching::kOn, "m");
    BlockTable before = computed(cache, tokens(4, 50));
    cache.tables().release(before);
    cache.events().record();
    BlockTable t = computed(cache, tokens(9));
    const auto stored = cache.events().take();
    using Kind = CacheEvent::Kind;
    ASSERT_EQ(stored.size(), 3u);
    EXPECT_EQ(stored[0].kind, Kind::kRemoved) << "the third page was that of the text before";
    EXPECT_EQ(stored[1].kind, Kind::kStored);
    EXPECT_TRUE(stored[1].first);
    EXPECT_EQ(stored[1].tokens, tokens(4));
    EXPECT_FALSE(stored[2].first);
    EXPECT_EQ(stored[2].parent, stored[1].key);
    EXPECT_EQ(stored[2].tokens, tokens(4, 4));
    cache.tables().release(t);
    EXPECT_THAT(cache.events().take(), IsEmpty()) << "they can still be found";
    BlockTable again = computed(cache, tokens(9));
    EXPECT_THAT(cache.events().take(), IsEmpty()) << "nothing is new";
    cache.tables().release(again);
    BlockTable other = computed(cache, tokens(9, 100));
    std::vector<BlockKey> removed;
    for (const CacheEvent& e : cache.events().take())
        if (e.kind == Kind::kRemoved) removed.push_back(e.key);
    EXPECT_EQ(removed, (std::vector<BlockKey>{stored[2].key, stored[1].key})) << "the deeper one first";
    cache.tables().release(other);
    ASSERT_TRUE(cache.prefixes().reset());
    const auto cleared = cache.events().take();
    ASSERT_EQ(cleared.size(), 1u);
    EXPECT_EQ(cleared[0].kind, Kind::kCleared);
}

TEST(CacheEvents, TellOfBlocksWhoseNamesAreForgotten) {
    KvCache cache(4, 4, PrefixCaching::kOn, "m");
    cache.events().record();
    BlockTable t = computed(cache, tokens(9));
    const auto stored = cache.events().take();
    cache.prefixes().forget(t);
    const auto gone = cache.events().take();
    ASSERT_EQ(gone.size(), 2u) << "the third block never had a name";
    for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(gone[i].kind, CacheEvent::Kind::kRemoved);
        EXPECT_EQ(gone[i].key, stored[i].key);
    }
    cache.tables().release(t);
}

TEST(CacheEvents, TellOnceOfTwoEqualBlocks) {
    KvCache cache(4, 4, PrefixCaching::kOn, "m");
    cache.events().record();
    BlockTable a, b, other;
    for (BlockTable* t : {&a, &b}) {
        ASSERT_TRUE(cache.tables().grow(*t, 4));
        cache.prefixes().cache_full_blocks(*t, tokens(4));
    }
    EXPECT_EQ(cache.events().take().size(), 1u);
    cache.tables().release(a);
    ASSERT_TRUE(cache.tables().grow(other, 12));
    EXPECT_THAT(cache.events().take(), IsEmpty()) << "b has it";
    cache.prefixes().forget(b);
    EXPECT_EQ(cache.events().take().size(), 1u);
    cache.tables().release(b);
    cache.tables().release(other);
}

TEST(CacheSalt, KeepsEqualTextsApart) {
    KvCache cache(16, 4, PrefixCaching::kOn, "m");
    const BlockKey a = root_key("a"), b = root_key("b");
    BlockTable t = computed(cache, tokens(9), a);
    EXPECT_EQ(cache.prefixes().count_cached(tokens(9), a), 8u);
    EXPECT_EQ(cache.prefixes().count_cached(tokens(9), b), 0u);
    EXPECT_EQ(cache.prefixes().count_cached(tokens(9)), 0u);
    BlockTable plain = computed(cache, tokens(9));
    EXPECT_EQ(cache.prefixes().count_cached(tokens(9)), 8u);
    EXPECT_NE(plain.pages[0][0], t.pages[0][0]);
    cache.tables().release(t);
    cache.tables().release(plain);
}

TEST(CacheSalt, StaysWithAForkAndInHostMemory) {
    KvCache cache(16, 4, PrefixCaching::kOn, "m", {GroupSpec{}}, 8);
    const BlockKey salt = root_key("a");
    BlockTable t = computed(cache, tokens(9), salt), fork;
    ASSERT_TRUE(cache.tables().fork(t, 8, fork));
    EXPECT_EQ(fork.salt, salt);
    SwappedTable out;
    ASSERT_TRUE(cache.swap().out(t, 9, out));
    cache.copies().clear();
    ASSERT_TRUE(cache.swap().in(out, tokens(9), 9, t));
    EXPECT_EQ(t.salt, salt);
    EXPECT_EQ(cache.copies().copies().size(), 1u) << "two of three blocks are the fork's";
    cache.swap().drop(out);
    cache.tables().release(t);
    cache.tables().release(fork);
}

TEST(ZeroFreed, PagesThatAreNeitherHeldNorFoundAnyMore) {
    KvCache cache(4, 4, PrefixCaching::kOn, "m", {GroupSpec{}}, 4);
    cache.copies().zero_freed();
    BlockTable t = computed(cache, tokens(6)), shared;
    const auto pages = t.pages[0];
    ASSERT_TRUE(cache.tables().fork(t, 6, shared));
    cache.tables().release(t);
    EXPECT_THAT(zeroed(cache), IsEmpty()) << "another one holds them";
    cache.tables().release(shared);
    EXPECT_THAT(zeroed(cache), ElementsAre(pages[1])) << "the full one can be found";
    BlockTable all;
    ASSERT_TRUE(cache.tables().grow(all, 16));
    EXPECT_THAT(zeroed(cache), ElementsAre(pages[0])) << "before another request gets it";
    cache.tables().release(all);
    EXPECT_EQ(zeroed(cache).size(), 4u);
}

TEST(ZeroFreed, SlotsAfterTheCopyOutOfThemAndCachedPagesAtAReset) {
    KvCache cache(4, 4, PrefixCaching::kOn, "m", {GroupSpec{}}, 4);
    cache.copies().zero_freed();
    BlockTable t = computed(cache, tokens(8));
    const auto pages = t.pages[0];
    SwappedTable out;
    ASSERT_TRUE(cache.swap().out(t, 8, out));
    const auto slots = out.slots.pages[0];
    cache.swap().drop(out);
    EXPECT_THAT(zeroed(cache, Way::kZeroSlot), UnorderedElementsAre(slots[0], slots[1]));
    ASSERT_TRUE(cache.prefixes().reset());
    EXPECT_THAT(zeroed(cache), UnorderedElementsAre(pages[0], pages[1]));
}

TEST(Residency, IsTheTimeThatAPageWasHeld) {
    KvCache cache(4, 4, PrefixCaching::kOff, "m");
    BlockTable t, fork;
    cache.residencies().set_time(100);
    ASSERT_TRUE(cache.tables().grow(t, 4));
    cache.residencies().set_time(150);
    ASSERT_TRUE(cache.tables().grow(t, 8));
    ASSERT_TRUE(cache.tables().fork(t, 4, fork));
    cache.residencies().set_time(400);
    cache.tables().release(t);
    EXPECT_THAT(cache.residencies().take(), ElementsAre(250u));
    cache.residencies().set_time(500);
    cache.tables().release(fork);
    EXPECT_THAT(cache.residencies().take(), ElementsAre(400u));
    EXPECT_THAT(cache.residencies().take(), IsEmpty());
    ASSERT_TRUE(cache.tables().grow(t, 4));
    ASSERT_TRUE(cache.tables().grow(fork, 4));
    cache.tables().discard(t); // in the step that took it: it says nothing about how long pages are held
    EXPECT_THAT(cache.residencies().take(), IsEmpty());
    cache.residencies().set_time(600);
    cache.tables().discard(fork);
    EXPECT_THAT(cache.residencies().take(), ElementsAre(100u));
}

}  // namespace
}  // namespace patchbay::kv::kv_events_test
