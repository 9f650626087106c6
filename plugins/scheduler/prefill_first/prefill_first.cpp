// prefill_first - a step has prompts while there are any that fit, and decodes only when there are none.
#include "patchbay/sdk/step_packer.hpp"

namespace {

class PrefillFirst {
  public:
    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        packer.keep_prompts(patchbay::arrived_later);
        if (packer.preempted_any()) return;
        for (const pb_sequence& s : step.waiting)
            if (!packer.admit(s)) break;
        if (plan.size() == 0) packer.keep_decodes(patchbay::arrived_later);
    }
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<PrefillFirst>(
    {.name = "prefill_first", .version = "1.0.0", .summary = "steps of prompts before steps of decodes"}))
