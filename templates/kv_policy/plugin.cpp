// @name@ - a KV policy: the page unused the longest is evicted first; each request that found it counts as time.
#include <set>
#include <vector>

#include "patchbay/sdk/kv_policy.hpp"

namespace {

class @Class@ {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::real("hit_worth", "1", 0, 1e6, "s", "how much later a page counts as used for each hit"),
    };

    explicit @Class@(const patchbay::Context& context)
        : hit_worth_us_(static_cast<uint64_t>(1e6 * context.get<double>("hit_worth"))) {}

    void reset(uint32_t total_pages) { // no page is cached; ids are below total_pages
        order_.clear();
        worth_.assign(total_pages, 0);
    }
    void cached(const pb_kv_page& p) { // no sequence holds it any more: it may be evicted
        worth_[p.page] = p.used_us + p.hits * hit_worth_us_;
        order_.insert({worth_[p.page], p.page});
    }
    void removed(uint32_t page) { order_.erase({worth_[page], page}); } // a sequence holds it again, or it is gone
    void choose(patchbay::Victims& victims) { // it names pages; they stay cached until removed()
        for (auto p = order_.begin(); p != order_.end() && victims.add(p->second);) ++p;
    }

  private:
    uint64_t hit_worth_us_;
    std::vector<uint64_t> worth_;                   // by page
    std::set<std::pair<uint64_t, uint32_t>> order_; // worth and page of the cached ones
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::kv_policy<@Class@>(
    {.name = "@name@", .version = "0.1.0", .summary = "the least recently used page first, with credit for hits"}))
