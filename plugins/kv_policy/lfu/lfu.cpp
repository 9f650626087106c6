// lfu - the page that was found by the fewest requests is evicted first; of several, the one unused the longest.
#include <algorithm>

#include "patchbay/sdk/kv_policy.hpp"
#include "patchbay/sdk/page_lists.hpp"

namespace {

class Lfu {
  public:
    void reset(uint32_t total_pages) { pages_.reset(total_pages); }
    void cached(const pb_kv_page& p) { pages_.push_back(std::min(p.hits, kMaxHits), p.page); }
    void removed(uint32_t page) { pages_.remove(page); }
    void choose(patchbay::Victims& victims) {
        for (uint32_t hits = 0; hits <= kMaxHits && !victims.full(); ++hits)
            for (uint32_t p = pages_.first(hits); p != patchbay::PageLists::kNone && victims.add(p);)
                p = pages_.next(p);
    }

  private:
    static constexpr uint32_t kMaxHits = 255; // more count as so many
    patchbay::PageLists pages_{kMaxHits + 1}; // by hits, each in the order in which they were let go of
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::kv_policy<Lfu>(
    {.name = "lfu", .version = "1.0.0", .summary = "the least frequently used page is evicted first"}))
