// The shipped kv_policies against naive models of them, over a real prefix cache in random use.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "kv/kv_cache.hpp"
#include "patchbay/sdk/philox.hpp"
#include "unit/policies/plugins_fixture.hpp"

namespace patchbay::policies::kv_policies_test {
namespace {

using kv::BlockId;
using kv::CachedPage;

// What a policy should choose, in the plainest way: all cached pages, sorted.
class Model {
  public:
    virtual ~Model() = default;
    virtual void cached(const CachedPage& p) { pages[p.page] = {p, ++order}; }
    virtual void used(BlockId page) { pages.erase(page); }
    virtual void removed(BlockId page) { pages.erase(page); }
    virtual std::vector<BlockId> sorted() = 0; // the first to go first

  protected:
    struct Known {
        CachedPage page;
        uint64_t order; // in which they came to be cached
    };
    std::vector<BlockId> sorted_by(const std::function<bool(const Known&, const Known&)>& before) {
        std::vector<Known> all;
        for (const auto& [id, known] : pages) all.push_back(known);
        std::ranges::sort(all, before);
        std::vector<BlockId> out;
        for (const Known& k : all) out.push_back(k.page.page);
        return out;
    }
    std::map<BlockId, Known> pages;
    uint64_t order = 0;
};

class LruModel : public Model {
    std::vector<BlockId> sorted() override {
        return sorted_by([](const Known& a, const Known& b) { return a.order < b.order; });
    }
};

class LfuModel : public Model {
    std::vector<BlockId> sorted() override {
        return sorted_by([](const Known& a, const Known& b) {
            return std::pair(a.page.hits, a.order) < std::pair(b.page.hits, b.order);
        });
    }
};

// Knows blocks by their hashes and keeps all that it has heard of those in the cache.
class PrefixTreeModel : public Model {
  public:
    explicit PrefixTreeModel(uint64_t keep_us) : keep_us_(keep_us) {}

    void cached(const CachedPage& p) override {
        Content& own = content_of(p.page);
        own.parent = nullptr;
        if (p.parent != kv::kNoBlock) {
            own.parent = &content_of(p.parent);
            own.parent->followers.insert(p.block);
        }
        for (Content* c = &own; c->parent; c = c->parent)
            if (c->shared || c->parent->followers.size() > 1) mark(*c->parent);
        Model::cached(p);
    }
    void removed(BlockId page) override {
        Model::removed(page);
        const auto at = contents_.find(page);
        if (at == contents_.end()) return;
        for (auto& [other, c] : contents_)
            if (c.parent == &at->second) c.parent = nullptr;
        contents_.erase(at);
    }
    std::vector<BlockId> sorted() override {
        std::vector<Known> lists[2];
        for (const auto& [id, known] : pages) lists[contents_.at(id).shared].push_back(known);
        for (auto& list : lists)
            std::ranges::sort(list, [](const Known& a, const Known& b) { return a.order < b.order; });
        std::vector<BlockId> out;
        size_t u = 0, s = 0;
        while (u < lists[0].size() || s < lists[1].size()) {
            const bool shared = u == lists[0].size() ||
                                (s < lists[1].size() && lists[1][s].page.released_ns / 1000 + keep_us_ <
                                                            lists[0][u].page.released_ns / 1000);
            out.push_back(shared ? lists[1][s++].page.page : lists[0][u++].page.page);
        }
        return out;
    }

  private:
    struct Content { // of a page, as long as it is in the cache
        BlockId page = kv::kNoBlock;
        Content* parent = nullptr;
        std::set<uint64_t> followers; // blocks that came after it
        bool shared = false;
    };
    Content& content_of(BlockId page) {
        Content& c = contents_[page];
        c.page = page;
        return c;
    }
    void mark(Content& c) {
        if (c.shared) return;
        c.shared = true;
        if (const auto at = pages.find(c.page); at != pages.end()) at->second.order = ++order; // it enters a new list
    }

    const uint64_t keep_us_;
    std::map<BlockId, Content> contents_;
};

// Asks plugin and model alike, and goes by the plugin.
class Both : public kv::Evictor {
  public:
    Both(const std::string& plugin, const host::Settings& settings, Model& model, uint32_t total_pages)
        : policy_(must(registry().kv_policy(plugin, settings, services()))), model_(model), total_pages_(total_pages) {
        call(&pb_kv_policy::adopt);
    }
    void cached(const CachedPage& p) override {
        model_.cached(p);
        changes_.push_back({static_cast<uint32_t>(p.page), PB_KV_CACHED, p.block, p.released_ns / 1000,
                            static_cast<uint32_t>(p.parent + 1), p.position, p.hits, p.group});
    }
    void used(BlockId page) override {
        model_.used(page);
        changes_.push_back({static_cast<uint32_t>(page), PB_KV_USED, 0, 0, 0, 0, 0, 0});
    }
    void removed(BlockId page) override {
        model_.removed(page);
        changes_.push_back({static_cast<uint32_t>(page), PB_KV_REMOVED, 0, 0, 0, 0, 0, 0});
    }
    size_t choose(std::span<BlockId> out) override {
        call(&pb_kv_policy::update);
        pb_kv_choice choice = sized<pb_kv_choice>();
        choice.max_pages = static_cast<uint32_t>(out.size());
        choice.pages = reinterpret_cast<uint32_t*>(out.data());
        EXPECT_EQ(policy_.table->choose(policy_.self(), &choice), PB_OK);
        std::vector<BlockId> expected = model_.sorted();
        expected.resize(std::min(expected.size(), out.size()));
        EXPECT_EQ(std::vector<BlockId>(out.begin(), out.begin() + choice.page_count), expected);
        choices += 1;
        return choice.page_count;
    }
    void refused(BlockId page) override { ADD_FAILURE() << "page " << page << " is not cached"; }

    uint32_t choices = 0;

  private:
    void call(pb_status (*pb_kv_policy::*function)(void*, const pb_kv_pages*)) {
        pb_kv_pages in = sized<pb_kv_pages>();
        in.page_stride = sizeof(pb_kv_page);
        in.page_count = static_cast<uint32_t>(changes_.size());
        in.total_pages = total_pages_;
        in.pages = changes_.data();
        EXPECT_EQ((policy_.table->*function)(policy_.self(), &in), PB_OK);
        changes_.clear();
    }
    host::KvPolicy policy_;
    Model& model_;
    uint32_t total_pages_;
    std::vector<pb_kv_page> changes_;
};

// Texts that share beginnings come and go; some go on from others.
void live(kv::KvCache& cache, kv::Evictor& evictor, uint64_t seed, const std::function<bool()>& failed) {
    cache.eviction().evict_by(evictor);
    uint64_t draws = 0, now_ns = 0;
    const auto below = [&](size_t n) { return draw(seed, draws++, Stream::kTest, 0)[0] % n; };
    std::vector<std::pair<kv::BlockTable, std::vector<int32_t>>> held;
    std::vector<std::vector<int32_t>> texts = {{}};
    for (uint32_t step = 0; step < 2500 && !failed(); ++step) {
        cache.residencies().set_time(now_ns += 1'000'000 * below(2000));
        if (held.size() < 4 && below(2)) {
            std::vector<int32_t> text = texts[below(texts.size())];
            if (text.size() > 24) text.resize(below(24));
            for (size_t n = 1 + below(12); n > 0; --n) text.push_back(static_cast<int32_t>(below(3)));
            kv::BlockTable t;
            cache.prefixes().note_hits(t, cache.prefixes().adopt(t, text));
            if (cache.tables().grow(t, static_cast<uint32_t>(text.size()))) cache.prefixes().cache_full_blocks(t, text);
            texts.size() < 12 ? texts.push_back(text) : (void)(texts[below(texts.size())] = text);
            held.emplace_back(std::move(t), std::move(text));
        } else if (!held.empty()) {
            const size_t i = below(held.size());
            if (below(20) == 0) cache.prefixes().forget(held[i].first);
            cache.tables().release(held[i].first);
            held.erase(held.begin() + static_cast<ptrdiff_t>(i));
        }
    }
    for (auto& [t, text] : held) cache.tables().release(t);
}

void expect_as_model(const std::string& plugin, const host::Settings& settings, Model& model, uint64_t seed) {
    constexpr uint32_t kPages = 40;
    kv::KvCache cache(kPages, 2, kv::PrefixCaching::kOn, "m");
    Both both(plugin, settings, model, kPages);
    live(cache, both, seed, [] { return ::testing::Test::HasFailure(); });
    EXPECT_GT(both.choices, 200u);
}

TEST(LruPolicy, ChoosesAsItsModel) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
        LruModel model;
        expect_as_model("lru", {}, model, seed);
    }
}

TEST(LfuPolicy, ChoosesAsItsModel) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
        LfuModel model;
        expect_as_model("lfu", {}, model, seed);
    }
}

TEST(PrefixTreePolicy, ChoosesAsItsModel) {
    for (const double keep_s : {0.0, 20.0, 1e6})
        for (uint64_t seed = 0; seed < 5; ++seed) {
            PrefixTreeModel model(static_cast<uint64_t>(keep_s * 1e6));
            expect_as_model("prefix_tree", {{"keep_s", std::to_string(keep_s)}}, model, seed);
        }
}

// Of 8 pages, 2 hold a beginning that two texts share; then come texts of their own.
TEST(PrefixTreePolicy, KeepsWhatTwoTextsShareLongerThanWhatOneUses) {
    const auto found = [](const std::string& plugin, const host::Settings& settings) {
        const auto policy = must(registry().kv_policy(plugin, settings, services()));
        pb_kv_pages in = sized<pb_kv_pages>();
        in.page_stride = sizeof(pb_kv_page);
        in.total_pages = 8;
        // pages 0 and 1 are the beginning; 2 and 3 follow it; the others came later, and alone
        const std::vector<pb_kv_page> pages = {
            {2, PB_KV_CACHED, 12, 1'000'000, 2, 8, 0, 0}, {3, PB_KV_CACHED, 13, 2'000'000, 2, 8, 0, 0},
            {1, PB_KV_CACHED, 11, 2'000'000, 1, 4, 1, 0}, {0, PB_KV_CACHED, 10, 2'000'000, 0, 0, 1, 0},
            {5, PB_KV_CACHED, 15, 9'000'000, 5, 4, 0, 0}, {4, PB_KV_CACHED, 14, 9'000'000, 0, 0, 0, 0}};
        in.page_count = static_cast<uint32_t>(pages.size());
        in.pages = pages.data();
        EXPECT_EQ(policy.table->adopt(policy.self(), &in), PB_OK);
        std::vector<uint32_t> out(6);
        pb_kv_choice choice = sized<pb_kv_choice>();
        choice.max_pages = 6;
        choice.pages = out.data();
        EXPECT_EQ(policy.table->choose(policy.self(), &choice), PB_OK);
        return out;
    };
    using Pages = std::vector<uint32_t>;
    EXPECT_EQ(found("lru", {}), (Pages{2, 3, 1, 0, 5, 4}));
    EXPECT_EQ(found("lfu", {}), (Pages{2, 3, 5, 4, 1, 0}));
    EXPECT_EQ(found("prefix_tree", {}), (Pages{2, 3, 5, 4, 1, 0}));
    EXPECT_EQ(found("prefix_tree", {{"keep_s", "6"}}), (Pages{2, 3, 1, 0, 5, 4})) << "7 s older than the others";
    EXPECT_EQ(found("prefix_tree", {{"keep_s", "0"}}), (Pages{2, 3, 1, 0, 5, 4}));
}

}  // namespace
}  // namespace patchbay::policies::kv_policies_test
