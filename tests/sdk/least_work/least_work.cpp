// least_work - the request that needs the least work is admitted first; those who wait long count as smaller.
#include "patchbay/sdk/step_packer.hpp"

namespace {

class LeastWork {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::real("output_cost", "8", 0, 1e6, "tokens", "prompt tokens that one output token weighs"),
        patchbay::param::real("ageing", "100", 0, 1e9, "tokens/s", "how much smaller a request gets for each second"),
    };

    explicit LeastWork(const patchbay::Context& context)
        : output_cost_(context.get<double>("output_cost")), ageing_(context.get<double>("ageing")) {}

    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        packer.keep_running(patchbay::arrived_later);  // the latest arrival is preempted first if pages run out
        patchbay::admit_by(step, packer, [&](const pb_sequence& s) {
            const double outputs_left = s.max_tokens - s.output_tokens;
            const double waited_s = 1e-6 * static_cast<double>(step.raw.now_us - s.arrival_us);
            return patchbay::remaining(s) + output_cost_ * outputs_left - ageing_ * waited_s;
        });
    }

  private:
    double output_cost_, ageing_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<LeastWork>(
    {.name = "least_work", .version = "1.0.0", .summary = "the least work first, with ageing"}))
