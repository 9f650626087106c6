// A kv_policy that names the oldest pages, or what it should not: pages that are not there, too few, or it throws.
#include <string>

#include "patchbay/sdk/kv_policy.hpp"
#include "patchbay/sdk/page_lists.hpp"

namespace {

class Misnames {
  public:
    static constexpr const char* kWrong[] = {"nothing", "pages", "count", "choose", "update", nullptr};
    static constexpr pb_param kParams[] = {patchbay::param::choice("wrong", "nothing", kWrong, "what is wrong")};

    explicit Misnames(const patchbay::Context& context) : wrong_(context.get<std::string>("wrong")) {}
    void reset(uint32_t total_pages) { pages_.reset(total_pages); }
    void cached(const pb_kv_page& p) {
        if (wrong_ == "update") throw patchbay::Error(PB_FAILED, "as its setting says");
        pages_.push_back(0, p.page);
    }
    void removed(uint32_t page) { pages_.remove(page); }
    void choose(patchbay::Victims& victims) {
        if (wrong_ == "choose") throw patchbay::Error(PB_FAILED, "as its setting says");
        if (wrong_ == "pages") victims.add(1u << 30);
        if (wrong_ == "count") return;
        for (uint32_t p = pages_.first(0); p != patchbay::PageLists::kNone && victims.add(p);) p = pages_.next(p);
    }

  private:
    std::string wrong_;
    patchbay::PageLists pages_{1};
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::kv_policy<Misnames>(
    {.name = "misnames", .version = "1.0.0", .summary = "wrong as its setting says"}))
