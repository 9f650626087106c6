// priority - the lower value first, then the earlier arrival; the worst value is preempted first.
#include "patchbay/sdk/step_packer.hpp"

namespace {

class Priority {
  public:
    static constexpr pb_param kParams[] = {patchbay::param::real(
        "ageing", "0", 0, 1e6, "1/s", "how much a request's value falls a second, from its arrival on", PB_PARAM_HOT)};

    explicit Priority(const patchbay::Context& context) { configure(context); }
    void configure(const patchbay::Context& context) { ageing_ = context.get<double>("ageing"); }

    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        const auto now = static_cast<double>(step.raw.now_us);
        // Ages while waiting and running: otherwise the old would be admitted and then preempted for the new.
        const auto value = [&](const pb_sequence& s) {
            return s.priority - ageing_ * 1e-6 * (now - static_cast<double>(s.arrival_us));
        };
        packer.keep_running([&](const pb_sequence& a, const pb_sequence& b) {
            return value(a) != value(b) ? value(a) > value(b) : patchbay::arrived_later(a, b);
        });
        patchbay::admit_by(step, packer, value);
    }

  private:
    double ageing_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<Priority>(
    {.name = "priority", .version = "1.0.0", .summary = "the lower priority value first, with ageing"}))
