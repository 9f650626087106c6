// Plugins that pass every check and are wrong all the same: only random worlds in an engine show it, as
// `patchbay plugin test --thorough` has them.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "patchbay/sdk/kv_policy.hpp"
#include "patchbay/sdk/step_packer.hpp"

namespace {

// The order of arrival, but what was preempted and lies in host memory is never admitted again.
class LeavesOffloaded {
  public:
    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        packer.keep_running(patchbay::arrived_later);
        if (packer.preempted_any()) return;
        for (const pb_sequence& s : step.waiting)
            if (!(s.flags & PB_SEQ_SWAPPED) && !packer.admit(s)) return;
    }
};

// The oldest page first; of more than so many that are cached it forgets one.
class ForgetsOne {
  public:
    void reset(uint32_t) { pages_.clear(); }
    void cached(const pb_kv_page& p) {
        if (pages_.size() < 60) pages_.push_back(p.page); // the checks' world has 40 pages
    }
    void removed(uint32_t page) { std::erase(pages_, page); }
    void choose(patchbay::Victims& victims) {
        for (const uint32_t page : pages_)
            if (!victims.add(page)) return;
    }

  protected:
    std::vector<uint32_t> pages_;
};

// The oldest page first, but what is the process's lasts for two worlds.
class UsesUpWhatIsShared : public ForgetsOne {
  public:
    void reset(uint32_t total_pages) {
        constexpr uint32_t kOfTheChecks = 40;
        pages_.clear();
        if (total_pages == kOfTheChecks || std::exchange(counted_, true)) return;
        constexpr const char* kUsed = "SPECIMEN_WORLDS_USED"; // which outlives the library, as what is static does not
        const char* const before = std::getenv(kUsed);
        const int worlds = (before ? std::atoi(before) : 0) + 1;
        if (worlds == 3) std::abort();
        setenv(kUsed, std::to_string(worlds).c_str(), 1);
    }
    void cached(const pb_kv_page& p) { pages_.push_back(p.page); }

  private:
    bool counted_ = false;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<LeavesOffloaded>({.name = "leaves_offloaded",
                                                      .version = "1.0.0",
                                                      .summary = "never comes back to what lies in host memory"}),
                patchbay::kv_policy<ForgetsOne>(
                    {.name = "forgets_one", .version = "1.0.0", .summary = "forgets pages where many are cached"}),
                patchbay::kv_policy<UsesUpWhatIsShared>({.name = "uses_up_what_is_shared",
                                                         .version = "1.0.0",
                                                         .summary = "ends the process at its third world"}))
