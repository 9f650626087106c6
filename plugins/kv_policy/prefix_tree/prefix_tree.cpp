// prefix_tree - pages of one conversation are evicted before those that several have in common.
#include <vector>

#include "patchbay/sdk/kv_policy.hpp"
#include "patchbay/sdk/page_lists.hpp"

namespace {

// A page is shared once two different blocks have followed it or a page after it: there the tree branches. Sequences
// let go of their last pages first, so each list below has every page before the one that it follows: leaves go first.
class PrefixTree {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::real("keep_s", "300", 0, 1e9, "s",
                              "a shared page is evicted as if it had been used so much later; 0: as by lru",
                              PB_PARAM_HOT),
    };
    explicit PrefixTree(const patchbay::Context& context) { configure(context); }
    void configure(const patchbay::Context& context) {
        keep_us_ = static_cast<uint64_t>(context.get<double>("keep_s") * 1e6);
    }

    void reset(uint32_t total_pages) {
        lists_.reset(total_pages);
        pages_.assign(total_pages, {});
    }
    void cached(const pb_kv_page& p) {
        Page& page = pages_[p.page];
        page.used_us = p.used_us;
        page.parent = p.parent;
        if (p.parent > 0) {
            Page& parent = pages_[p.parent - 1];
            page.parent_age = parent.age;
            if (page.is_shared || (parent.has_follower && parent.follower != p.block)) share(p.parent - 1);
            if (!parent.has_follower) parent.has_follower = true, parent.follower = p.block;
        }
        lists_.push_back(page.is_shared ? kShared : kUnshared, p.page);
    }
    void used(uint32_t page) { lists_.remove(page); }
    void removed(uint32_t page) {
        lists_.remove(page);
        pages_[page] = {.age = pages_[page].age + 1};
    }
    void choose(patchbay::Victims& victims) {
        uint32_t unshared = lists_.first(kUnshared), shared = lists_.first(kShared);
        for (;;) {
            uint32_t& next = goes_before(shared, unshared) ? shared : unshared;
            if (next == kNone || !victims.add(next)) return;
            next = lists_.next(next);
        }
    }

  private:
    static constexpr uint32_t kNone = patchbay::PageLists::kNone;
    enum : uint32_t { kUnshared, kShared };

    struct Page {
        uint64_t used_us = 0, follower = 0; // the block that followed it first
        uint32_t parent = 0, parent_age = 0; // plus one; its age when it was that
        uint32_t age = 0;                    // how many contents it has had
        bool has_follower = false, is_shared = false;
    };

    bool goes_before(uint32_t shared, uint32_t unshared) const {
        if (shared == kNone || unshared == kNone) return shared != kNone;
        return pages_[shared].used_us + keep_us_ < pages_[unshared].used_us;
    }
    // With all pages before it. One that a sequence still holds passes it on when it is cached.
    void share(uint32_t page) {
        while (!pages_[page].is_shared) {
            Page& p = pages_[page];
            p.is_shared = true;
            if (lists_.has(page)) lists_.push_back(kShared, page);
            if (p.parent == 0 || pages_[p.parent - 1].age != p.parent_age) return;
            page = p.parent - 1;
        }
    }

    uint64_t keep_us_ = 0;
    patchbay::PageLists lists_{2};
    std::vector<Page> pages_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::kv_policy<PrefixTree>(
    {.name = "prefix_tree", .version = "1.0.0", .summary = "shared prefixes stay longer than other pages"}))
