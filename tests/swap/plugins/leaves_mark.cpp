// A scheduler whose library writes to the file that PATCHBAY_TEST_MARK names as soon as it is mapped: whether it was.
#include <cstdio>
#include <cstdlib>

#include "patchbay/sdk/step_packer.hpp"

namespace {

[[gnu::constructor]] void leave_mark() {
    const char* const path = std::getenv("PATCHBAY_TEST_MARK");
    std::FILE* const file = path ? std::fopen(path, "a") : nullptr;
    if (!file) return;
    std::fputs("mapped\n", file);
    std::fclose(file);
}

class Scheduler { // first come, first served
  public:
    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        packer.keep_running(patchbay::arrived_later);
        patchbay::admit_by(step, packer, [](const pb_sequence& s) { return static_cast<double>(s.arrival_us); });
    }
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<Scheduler>({.name = "leaves_mark", .version = "1.0.0", .summary = "for tests"}))
