// prefill_first - a step has only prompts while some fit, and only decodes otherwise.
#include "patchbay/sdk/step_packer.hpp"

namespace {

class PrefillFirst {
  public:
    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        packer.keep_prompts(patchbay::arrived_later);
        packer.pass_over_decodes();
        if (!packer.preempted_any())
            for (const pb_sequence& s : step.waiting)
                if (!packer.admit(s)) break;
        // Also if a prompt found no pages and was preempted: it would be admitted again and fail again, for ever.
        if (plan.size() == 0) packer.keep_decodes(patchbay::arrived_later);
    }
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<PrefillFirst>(
    {.name = "prefill_first", .version = "1.0.0", .summary = "steps of prompts before steps of decodes"}))
