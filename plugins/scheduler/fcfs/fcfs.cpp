// fcfs - first come, first served: one token budget, decodes first, then chunks in progress, then new prompts.
#include "patchbay/sdk/step_packer.hpp"

namespace {

class Fcfs {
  public:
    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        packer.keep_running(patchbay::arrived_later);
        if (packer.preempted_any()) return;
        for (const pb_sequence& s : step.waiting)
            if (!packer.admit(s)) break;
    }
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<Fcfs>({.name = "fcfs", .version = "1.0.0", .summary = "first come, first served"}))
