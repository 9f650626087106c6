// sjf - shortest prompt first, with ageing so that long prompts are not starved.
#include "patchbay/sdk/step_packer.hpp"

namespace {

class ShortestFirst {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::real("ageing", "50", 0, 1e9, "tokens/s",
                              "by how many tokens a waiting prompt counts as shorter for each second", PB_PARAM_HOT)};

    explicit ShortestFirst(const patchbay::Context& context) { configure(context); }
    void configure(const patchbay::Context& context) { ageing_ = context.get<double>("ageing"); }

    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        packer.keep_running(patchbay::arrived_later);
        const auto now = static_cast<double>(step.raw.now_us);
        patchbay::admit_by(step, packer, [&](const pb_sequence& s) {
            return patchbay::uncached(s) - ageing_ * 1e-6 * (now - static_cast<double>(s.arrival_us));
        });
    }

  private:
    double ageing_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<ShortestFirst>(
    {.name = "sjf", .version = "1.0.0", .summary = "shortest prompt first, with ageing"}))
