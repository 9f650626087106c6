// priority - the lower value first, then the earlier arrival; the worst value is preempted first.
#include "patchbay/sdk/step_packer.hpp"

namespace {

class Priority {
  public:
    static constexpr pb_param kParams[] = {patchbay::param::real(
        "ageing", "0", 0, 1e6, "1/s", "how much a waiting request's value falls a second", PB_PARAM_HOT)};

    explicit Priority(const patchbay::Context& context) { configure(context); }
    void configure(const patchbay::Context& context) { ageing_ = context.get<double>("ageing"); }

    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        packer.keep_running([](const pb_sequence& a, const pb_sequence& b) {
            return a.priority != b.priority ? a.priority > b.priority : patchbay::arrived_later(a, b);
        });
        const auto now = static_cast<double>(step.raw.now_us);
        patchbay::admit_by(step, packer, [&](const pb_sequence& s) {
            return s.priority - ageing_ * 1e-6 * (now - static_cast<double>(s.arrival_us));
        });
    }

  private:
    double ageing_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<Priority>(
    {.name = "priority", .version = "1.0.0", .summary = "the lower priority value first, with ageing"}))
