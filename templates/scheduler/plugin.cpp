// @name@ - a scheduler: the request with the shortest prompt is admitted first; those who wait long count as shorter.
#include "patchbay/sdk/step_packer.hpp"

namespace {

class @Class@ {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::real("ageing", "100", 0, 1e9, "tokens/s", "how much shorter a prompt counts for each second",
                              PB_PARAM_HOT), // it may change while requests run: `patchbay set scheduler ageing=10`
    };

    explicit @Class@(const patchbay::Context& context) { configure(context); }
    void configure(const patchbay::Context& context) { ageing_ = context.get<double>("ageing"); }

    // In each step. `step` has the budgets and the sequences; `plan` takes the tokens that each computes.
    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);       // knows budgets, pages and chunks of prompts
        packer.keep_running(patchbay::arrived_later);  // the latest arrival is preempted first if pages run out
        patchbay::admit_by(step, packer, [&](const pb_sequence& s) { // the lowest first
            const double waited_s = 1e-6 * static_cast<double>(step.raw.now_us - s.arrival_us);
            return patchbay::uncached(s) - ageing_ * waited_s;
        });
    }

  private:
    double ageing_ = 0;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<@Class@>(
    {.name = "@name@", .version = "0.1.0", .summary = "the shortest prompt first, with ageing"}))
