// lru - the page unused the longest is evicted first.
#include "patchbay/sdk/kv_policy.hpp"
#include "patchbay/sdk/page_lists.hpp"

namespace {

class Lru {
  public:
    void reset(uint32_t total_pages) { pages_.reset(total_pages); }
    void cached(const pb_kv_page& p) { pages_.push_back(0, p.page); }
    void removed(uint32_t page) { pages_.remove(page); }
    void choose(patchbay::Victims& victims) {
        for (uint32_t p = pages_.first(0); p != patchbay::PageLists::kNone && victims.add(p);) p = pages_.next(p);
    }

  private:
    patchbay::PageLists pages_{1}; // in the order in which they were let go of
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::kv_policy<Lru>(
    {.name = "lru", .version = "1.0.0", .summary = "the least recently used page is evicted first"}))
