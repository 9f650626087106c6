// kept_sdk - evicts the page that was cached latest, over the SDK.
#include <algorithm>
#include <vector>

#include "grown.hpp"
#include "patchbay/sdk/kv_policy.hpp"

namespace {

class Kept {
  public:
    void reset(uint32_t) { pages_.clear(); }
    void cached(const pb_kv_page& p) {
        pages_.push_back(p.page);
    }
    void removed(uint32_t page) { std::erase(pages_, page); }
    void choose(patchbay::Victims& victims) {
        kept::expect_zero_growth(victims.raw, "pb_kv_choice");
        for (size_t i = pages_.size(); i-- > 0 && victims.add(pages_[i]);) {
        }
    }

  private:
    std::vector<uint32_t> pages_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::kv_policy<Kept>(
    {.name = "kept_sdk", .version = "1.0.0", .summary = "the page that was cached latest is evicted first"}))
