// kept_sdk - first come, first served, over the SDK; with a parameter that may change while it runs.
#include "grown.hpp"
#include "patchbay/sdk/step_packer.hpp"

namespace {

class Kept {
  public:
    static constexpr pb_param kParams[] = {patchbay::param::integer("admitted", "1000", 1, 1000, "requests",
                                                                    "admitted in a step at most", PB_PARAM_HOT)};
    explicit Kept(const patchbay::Context& context) {
        kept::expect_zero_growth(context.host(), "pb_host");
        configure(context);
    }
    void configure(const patchbay::Context& context) { admitted_ = context.get<uint32_t>("admitted"); }

    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        kept::expect_zero_growth(step.raw, "pb_scheduler_in");
        for (const patchbay::Sequences* all : {&step.running, &step.waiting})
            for (const pb_sequence& s : *all)
                if (step.raw.sequence_stride < sizeof s) kept::expect_zero_growth(s, "pb_sequence");
        patchbay::StepPacker packer(step, plan);
        packer.keep_running(patchbay::arrived_later);
        if (packer.preempted_any()) return;
        uint32_t left = admitted_;
        for (const pb_sequence& s : step.waiting)
            if (left-- == 0 || !packer.admit(s)) break;
    }

  private:
    uint32_t admitted_ = 0;
};

}  // namespace

PATCHBAY_PLUGIN(
    patchbay::scheduler<Kept>({.name = "kept_sdk", .version = "1.0.0", .summary = "first come, first served"}))
