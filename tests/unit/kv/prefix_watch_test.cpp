// What is known of waiting prompts' prefixes is what a look-up finds, whatever happens to blocks in between.
#include "kv/prefix_watch.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "kv/kv_cache.hpp"
#include "patchbay/sdk/philox.hpp"

namespace patchbay::kv::prefix_watch_test {
namespace {

constexpr GroupSpec kFull{}, kWindow{GroupKind::kSliding, 6}, kLongWindow{GroupKind::kSliding, 15};

std::vector<int32_t> tokens(size_t count, int32_t token = 1) { return std::vector<int32_t>(count, token); }

BlockTable computed(KvCache& cache, const std::vector<int32_t>& prompt) {
    BlockTable t;
    cache.prefixes().adopt(t, prompt);
    EXPECT_TRUE(cache.tables().grow(t, static_cast<uint32_t>(prompt.size())));
    cache.prefixes().cache_full_blocks(t, prompt);
    return t;
}

TEST(PrefixWatch, FollowsBlocksThatAreCachedTakenGivenBackAndEvicted) {
    KvCache cache(4, 4, PrefixCaching::kOn, "m");
    const auto prompt = tokens(13);
    const size_t slot = cache.prefixes().watch(prompt).value();
    const auto now = [&] {
        cache.prefixes().watched().update();
        return cache.prefixes().watched().prefix(slot);
    };
    EXPECT_EQ(now(), (CachedPrefix{0, 0}));
    BlockTable t = computed(cache, tokens(8));
    EXPECT_EQ(now(), (CachedPrefix{8, 2})) << "in use, so taking them takes no free block";
    cache.tables().release(t);
    EXPECT_EQ(now(), (CachedPrefix{8, 0}));
    t = computed(cache, tokens(13));
    EXPECT_EQ(now(), (CachedPrefix{12, 3})) << "the last token is to be computed";
    cache.tables().release(t);
    ASSERT_TRUE(cache.tables().grow(t, 8)); // the one that is partly full, and the deepest of the others
    EXPECT_EQ(now(), (CachedPrefix{8, 0}));
    cache.tables().release(t);
    ASSERT_TRUE(cache.prefixes().reset());
    EXPECT_EQ(now(), (CachedPrefix{0, 0}));
    cache.prefixes().watched().remove(slot);
}

TEST(PrefixWatch, HasRoomForSoManyPrompts) {
    KvCache cache(4, 4, PrefixCaching::kOn, "m");
    const auto prompt = tokens(13);
    for (size_t i = 0; i < PrefixWatch::kMaxPrompts; ++i) EXPECT_EQ(cache.prefixes().watch(prompt), i);
    EXPECT_EQ(cache.prefixes().watch(prompt), std::nullopt);
    cache.prefixes().watched().remove(77);
    EXPECT_EQ(cache.prefixes().watch(prompt), 77u);
    BlockTable t = computed(cache, prompt);
    EXPECT_EQ(cache.prefixes().watched().update().count(), PrefixWatch::kMaxPrompts);
    EXPECT_TRUE(cache.prefixes().watched().update().none()) << "nothing has happened since";
    cache.tables().release(t);
}

class RandomBlocks : public ::testing::TestWithParam<std::vector<GroupSpec>> {};

TEST_P(RandomBlocks, AreFollowedExactly) {
    KvCache cache(24, 4, PrefixCaching::kOn, "m", GetParam());
    uint64_t draws = 0;
    const auto below = [&](uint32_t n) { return draw(5, draws++, Stream::kTest, 0)[0] % n; };
    const auto random_text = [&] { // few of them, so that many begin alike and some are equal
        std::vector<int32_t> out;
        for (uint32_t n = below(6); n > 0; --n) out.insert(out.end(), 4, static_cast<int32_t>(below(2)));
        out.insert(out.end(), 1 + below(4), 7);
        return out;
    };
    std::vector<std::vector<int32_t>> prompts;
    for (uint32_t i = 0; i < 60; ++i) prompts.push_back(random_text());
    std::vector<std::optional<size_t>> slots(prompts.size());
    std::vector<std::pair<BlockTable, std::vector<int32_t>>> held;
    uint32_t changes = 0, longest = 0, free_hits = 0;
    for (uint32_t step = 0; step < 3000; ++step) {
        const uint32_t kind = held.size() > 5 ? 3 : below(8);
        if (kind < 3) {
            const auto text = random_text();
            BlockTable t;
            if (below(2)) cache.prefixes().adopt(t, text); // else its blocks are the same as others
            if (cache.tables().grow(t, static_cast<uint32_t>(text.size()))) cache.prefixes().cache_full_blocks(t, text);
            held.emplace_back(std::move(t), text);
        } else if (kind < 5 && !held.empty()) {
            const size_t i = below(static_cast<uint32_t>(held.size()));
            cache.tables().release(held[i].first);
            held.erase(held.begin() + static_cast<ptrdiff_t>(i));
        } else if (kind == 5 && !held.empty()) {
            auto& [t, text] = held[below(static_cast<uint32_t>(held.size()))];
            cache.tables().free_outside_window(
                t, std::min(cache.shape().capacity(t), static_cast<uint32_t>(text.size())));
        } else if (kind == 6 && !held.empty()) {
            if (below(4) == 0) cache.prefixes().forget(held.back().first);
        } else {
            const size_t i = below(static_cast<uint32_t>(prompts.size()));
            if (slots[i]) cache.prefixes().watched().remove(*std::exchange(slots[i], std::nullopt));
            else slots[i] = cache.prefixes().watch(prompts[i]);
        }
        std::vector<CachedPrefix> before;
        PrefixWatch& watched = cache.prefixes().watched();
        for (const auto& slot : slots) before.push_back(slot ? watched.prefix(*slot) : CachedPrefix{});
        const PrefixWatch::Prompts changed = cache.prefixes().watched().update();
        changes += static_cast<uint32_t>(changed.count());
        for (size_t i = 0; i < slots.size(); ++i) {
            if (!slots[i]) continue;
            const CachedPrefix is = cache.prefixes().cached(prompts[i]);
            ASSERT_EQ(cache.prefixes().watched().prefix(*slots[i]), is) << "step " << step << ", prompt " << i;
            ASSERT_EQ(changed[*slots[i]], before[i] != is) << "step " << step << ", prompt " << i;
            longest = std::max(longest, is.tokens);
            free_hits += is.tokens > 0 && is.pages_in_use == 0;
        }
        std::vector<const BlockTable*> tables;
        for (const auto& [t, text] : held) tables.push_back(&t);
        const auto sound = cache.audit(tables);
        ASSERT_TRUE(sound) << "step " << step << ": " << sound.error();
    }
    EXPECT_GT(changes, 100u);
    EXPECT_GE(longest, 16u);
    EXPECT_GT(free_hits, 100u);
}

INSTANTIATE_TEST_SUITE_P(PrefixWatch, RandomBlocks,
                         ::testing::Values(std::vector<GroupSpec>{kFull}, std::vector<GroupSpec>{kFull, kWindow},
                                           std::vector<GroupSpec>{kWindow}, std::vector<GroupSpec>{kFull, kFull},
                                           std::vector<GroupSpec>{kWindow, kLongWindow}));

}  // namespace
}  // namespace patchbay::kv::prefix_watch_test
