// A healthy scheduler but for how it is linked: its class has a name that other libraries see, and so have its tables.
#include "patchbay/sdk/step_packer.hpp"

namespace specimen {

struct InOrder {
    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        packer.keep_running(patchbay::arrived_later);
        for (const pb_sequence& s : step.waiting)
            if (packer.preempted_any() || !packer.admit(s)) break;
    }
};

}  // namespace specimen

PATCHBAY_PLUGIN(
    patchbay::scheduler<specimen::InOrder>({.name = "in_order", .version = "1.0.0", .summary = "by arrival"}))
