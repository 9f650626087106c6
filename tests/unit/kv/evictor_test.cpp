// An evictor chooses which cached block goes next; the pool stays right whatever it chooses.
#include "kv/evictor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "kv/kv_cache.hpp"
#include "patchbay/sdk/philox.hpp"

namespace patchbay::kv::evictor_test {
namespace {

// Chooses as a test says, and remembers what it heard.
class Player : public Evictor {
  public:
    void cached(const CachedPage& p) override {
        EXPECT_FALSE(pages.contains(p.page)) << p.page;
        pages[p.page] = p;
    }
    void used(BlockId page) override { EXPECT_EQ(pages.erase(page), 1u) << page; }
    void removed(BlockId page) override { pages.erase(page), removals += 1; }
    size_t choose(std::span<BlockId> out) override {
        wanted.push_back(out.size());
        EXPECT_LE(out.size(), pages.size());
        const size_t n = std::min(out.size(), next.size());
        std::copy_n(next.begin(), n, out.begin());
        next.erase(next.begin(), next.begin() + static_cast<ptrdiff_t>(n));
        return n;
    }
    void refused(BlockId page) override { refusals.push_back(page); }

    std::map<BlockId, CachedPage> pages; // that may be evicted
    std::vector<BlockId> next;           // to be chosen
    std::vector<size_t> wanted;          // by call of choose()
    std::vector<BlockId> refusals;
    uint32_t removals = 0;
};

std::vector<int32_t> tokens(int count, int first = 0) {
    std::vector<int32_t> v(static_cast<size_t>(count));
    std::iota(v.begin(), v.end(), first);
    return v;
}

BlockTable computed(KvCache& cache, const std::vector<int32_t>& prompt) {
    BlockTable t;
    cache.prefixes().note_hits(t, cache.prefixes().adopt(t, prompt));
    EXPECT_TRUE(cache.tables().grow(t, static_cast<uint32_t>(prompt.size())));
    cache.prefixes().cache_full_blocks(t, prompt);
    return t;
}

// Blocks of three texts of two blocks each, all cached; two blocks are empty.
struct Filled {
    Filled() {
        cache.eviction().evict_by(player);
        for (int i = 0; i < 3; ++i) {
            BlockTable t = computed(cache, tokens(8, 100 * i));
            pages.push_back(t.pages[0]);
            cache.tables().release(t);
        }
    }
    uint32_t found(int text) const { return cache.prefixes().count_cached(tokens(9, 100 * text)); }

    Player player;
    KvCache cache{8, 4, PrefixCaching::kOn, "m"};
    std::vector<std::vector<BlockId>> pages; // of the texts
};

TEST(Evictor, ChoosesOnceForAllBlocksThatAreWanted) {
    Filled f;
    f.player.next = {f.pages[1][1], f.pages[1][0]};
    BlockTable t;
    ASSERT_TRUE(f.cache.tables().grow(t, 16)); // two empty blocks, and two that are evicted
    EXPECT_EQ(f.player.wanted, std::vector<size_t>{2});
    EXPECT_EQ(f.found(0), 8u);
    EXPECT_EQ(f.found(1), 0u);
    EXPECT_EQ(f.found(2), 8u);
    EXPECT_EQ(f.cache.pool().eviction().evictions(), 2u);
    EXPECT_EQ(f.cache.pool().eviction().chosen_evictions(), 2u);
    EXPECT_EQ(t.pages[0][2], f.pages[1][1]) << "in the order of the choice";
}

TEST(Evictor, WhatItNamesWronglyGoesByAge) {
    Filled f;
    BlockTable held;
    f.cache.prefixes().adopt(held, tokens(9, 200));
    f.player.next = {f.pages[2][0], f.pages[1][1], 99, -1, f.pages[1][1]};
    BlockTable t;
    ASSERT_TRUE(f.cache.tables().grow(t, 24)); // two empty ones and four more, which is all that is cached
    EXPECT_EQ(f.player.refusals, (std::vector<BlockId>{f.pages[2][0], 99, -1}));
    EXPECT_EQ(f.cache.pool().eviction().chosen_evictions(), 1u);
    EXPECT_EQ(t.pages[0], (std::vector<BlockId>{t.pages[0][0], t.pages[0][1], f.pages[1][1], f.pages[0][1],
                                                f.pages[0][0], f.pages[1][0]}));
    EXPECT_EQ(f.found(2), 8u) << "it is held";
    const BlockTable* tables[] = {&t, &held};
    const auto sound = f.cache.audit(tables);
    EXPECT_TRUE(sound) << sound.error();
}

TEST(Evictor, HearsOfABlocksPlaceItsHitsAndItsTime) {
    Filled f;
    f.cache.residencies().set_time(7000);
    BlockTable t = computed(f.cache, tokens(13)); // of which 8 tokens are found
    EXPECT_FALSE(f.player.pages.contains(f.pages[0][0]));
    f.cache.tables().release(t);
    const CachedPage first = f.player.pages.at(f.pages[0][0]), second = f.player.pages.at(f.pages[0][1]);
    EXPECT_EQ(first.parent, kNoBlock);
    EXPECT_EQ(second.parent, f.pages[0][0]);
    EXPECT_EQ(first.position, 0u);
    EXPECT_EQ(second.position, 4u);
    EXPECT_EQ(second.hits, 1u);
    EXPECT_EQ(second.released_ns, 7000u);
    EXPECT_NE(first.block, second.block);
    EXPECT_EQ(f.player.pages.at(f.pages[1][0]).hits, 0u);
}

TEST(Evictor, HearsOfClearedAndOverwrittenBlocks) {
    Filled f;
    ASSERT_TRUE(f.cache.prefixes().reset());
    EXPECT_TRUE(f.player.pages.empty());
    EXPECT_EQ(f.player.removals, 6u);
    BlockTable t = computed(f.cache, tokens(8));
    f.cache.prefixes().forget(t);
    EXPECT_EQ(f.player.removals, 8u);
    f.cache.tables().release(t);
    EXPECT_TRUE(f.player.pages.empty());
}

TEST(Evictor, OfEqualBlocksOnlyOneIsCached) {
    Player player;
    KvCache cache(8, 4, PrefixCaching::kOn, "m");
    cache.eviction().evict_by(player);
    BlockTable a, b;
    for (BlockTable* t : {&a, &b}) {
        ASSERT_TRUE(cache.tables().grow(*t, 8));
        cache.prefixes().cache_full_blocks(*t, tokens(8));
    }
    cache.tables().release(a);
    cache.tables().release(b);
    EXPECT_EQ(player.pages.size(), 2u);
    EXPECT_EQ(cache.pool().cached(), 2u);
    EXPECT_EQ(cache.prefixes().count_cached(tokens(9)), 8u);
}

// Requests come, go, are offloaded and brought back, at random.
class RandomRequests {
  public:
    RandomRequests(KvCache& cache, const std::function<size_t(size_t)>& below) : cache_(cache), below_(below) {}

    void step() {
        const size_t kind = held_.size() > 5 ? 3 : below_(9);
        if (kind < 3) begin();
        else if (kind < 5 && !held_.empty()) end();
        else if (kind == 5 && !held_.empty()) pass_window();
        else if (kind == 6 && !held_.empty()) offload();
        else if (kind == 7 && !swapped_.empty()) bring_back();
        else if (kind == 8 && !held_.empty() && below_(4) == 0) cache_.prefixes().forget(held_.back().first);
    }
    Result<> audit() const {
        std::vector<const BlockTable*> tables;
        for (const auto& [t, text] : held_) tables.push_back(&t);
        return cache_.audit(tables);
    }

  private:
    void begin() {
        std::vector<int32_t> text;
        for (size_t n = below_(6); n > 0; --n) text.insert(text.end(), 4, static_cast<int32_t>(below_(2)));
        text.insert(text.end(), 1 + below_(4), 7);
        BlockTable t;
        cache_.prefixes().note_hits(t, cache_.prefixes().adopt(t, text));
        if (cache_.tables().grow(t, static_cast<uint32_t>(text.size()))) cache_.prefixes().cache_full_blocks(t, text);
        held_.emplace_back(std::move(t), text);
    }
    void end() {
        const size_t i = below_(held_.size());
        below_(3) ? cache_.tables().release(held_[i].first) : cache_.tables().discard(held_[i].first);
        held_.erase(held_.begin() + static_cast<ptrdiff_t>(i));
    }
    void pass_window() {
        auto& [t, text] = held_[below_(held_.size())];
        cache_.tables().free_outside_window(
            t, std::min(cache_.shape().capacity(t), static_cast<uint32_t>(text.size())));
    }
    void offload() {
        auto& [t, text] = held_.back();
        SwappedTable out;
        if (t.held == 0 || !cache_.swap().out(t, static_cast<uint32_t>(text.size()), out)) return;
        swapped_.emplace_back(std::move(out), text);
        held_.pop_back();
    }
    void bring_back() {
        BlockTable t;
        auto& [slots, text] = swapped_.back();
        if (!cache_.swap().in(slots, text, slots.tokens + 1, t)) return;
        cache_.swap().drop(slots);
        held_.emplace_back(std::move(t), text);
        swapped_.pop_back();
    }

    KvCache& cache_;
    std::function<size_t(size_t)> below_; // a random number below another
    std::vector<std::pair<BlockTable, std::vector<int32_t>>> held_;
    std::vector<std::pair<SwappedTable, std::vector<int32_t>>> swapped_;
};

// Whatever is chosen, right or wrong: what the evictor knows is what the pool has, and the books are sound.
class RandomChoices : public ::testing::TestWithParam<std::vector<GroupSpec>> {};

TEST_P(RandomChoices, LeaveThePoolSound) {
    Player player;
    KvCache cache(24, 4, PrefixCaching::kOn, "m", GetParam(), 12);
    cache.eviction().evict_by(player);
    uint64_t draws = 0;
    const auto below = [&](size_t n) -> size_t { return draw(9, draws++, Stream::kTest, 0)[0] % n; };
    RandomRequests requests(cache, below);
    for (uint32_t step = 0; step < 4000; ++step) {
        player.next.clear();
        for (const auto& [page, its] : player.pages) player.next.push_back(page);
        for (size_t i = player.next.size(); i > 1; --i) std::swap(player.next[i - 1], player.next[below(i)]);
        if (below(4) == 0) player.next.insert(player.next.begin(), static_cast<BlockId>(below(30)));
        if (below(6) == 0) player.next.resize(player.next.size() / 2);
        requests.step();
        const auto sound = requests.audit();
        ASSERT_TRUE(sound) << "step " << step << ": " << sound.error();
        const auto truth = cache.pool().eviction().pages().all();
        ASSERT_EQ(truth.size(), player.pages.size()) << "step " << step;
        for (const CachedPage& p : truth) {
            const auto at = player.pages.find(p.page);
            ASSERT_TRUE(at != player.pages.end()) << "step " << step << ", page " << p.page;
            ASSERT_EQ(at->second.block, p.block) << "step " << step << ", page " << p.page;
        }
    }
    EXPECT_GT(cache.pool().eviction().chosen_evictions(), 300u);
    EXPECT_GT(cache.pool().eviction().evictions(), cache.pool().eviction().chosen_evictions());
    EXPECT_GT(player.refusals.size(), 50u);
}

INSTANTIATE_TEST_SUITE_P(Evictor, RandomChoices,
                         ::testing::Values(std::vector<GroupSpec>{GroupSpec{}},
                                           std::vector<GroupSpec>{GroupSpec{}, {GroupKind::kSliding, 6}},
                                           std::vector<GroupSpec>{{GroupKind::kSliding, 6}}));

}  // namespace
}  // namespace patchbay::kv::evictor_test
