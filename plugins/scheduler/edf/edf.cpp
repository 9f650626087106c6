// edf - the earliest deadline first; requests without one come last, by arrival.
#include <limits>

#include "patchbay/sdk/step_packer.hpp"

namespace {

double deadline(const pb_sequence& s) {
    return s.deadline_us > 0 ? static_cast<double>(s.deadline_us) : std::numeric_limits<double>::infinity();
}

class EarliestDeadline {
  public:
    static constexpr pb_param kParams[] = {patchbay::param::boolean(
        "preempt", "true", "who runs gives his seat to an earlier deadline that waits, one a step", PB_PARAM_HOT)};

    explicit EarliestDeadline(const patchbay::Context& context) { configure(context); }
    void configure(const patchbay::Context& context) { preempt_ = context.get<bool>("preempt"); }

    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        if (preempt_) patchbay::trade_seat(step, packer, deadline, [](const pb_sequence&) { return 0.0; });
        packer.keep_running([](const pb_sequence& a, const pb_sequence& b) {
            return deadline(a) != deadline(b) ? deadline(a) > deadline(b) : patchbay::arrived_later(a, b);
        });
        patchbay::admit_by(step, packer, deadline);
    }

  private:
    bool preempt_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<EarliestDeadline>(
    {.name = "edf", .version = "1.0.0", .summary = "the earliest deadline first"}))
