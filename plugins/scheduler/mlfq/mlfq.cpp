// mlfq - a feedback queue of levels: a request starts at the level of its prompt, and falls as its output grows.
#include <cmath>

#include "patchbay/sdk/step_packer.hpp"

namespace {

class FeedbackQueue {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::integer("quantum", "64", 1, 1 << 20, "tokens",
                                 "that a request may take, prompt and output, on level 0; each level doubles it",
                                 PB_PARAM_HOT),
        patchbay::param::integer("levels", "8", 1, 32, "levels", "of the queue", PB_PARAM_HOT),
        patchbay::param::real("promote_s", "10", 0, 1e9, "s",
                              "since its arrival, after which a request is one level up; again each time; 0: never",
                              PB_PARAM_HOT)};

    explicit FeedbackQueue(const patchbay::Context& context) { configure(context); }
    void configure(const patchbay::Context& context) {
        quantum_ = context.get<uint32_t>("quantum");
        levels_ = context.get<uint32_t>("levels");
        promote_us_ = 1e6 * context.get<double>("promote_s");
    }

    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        const auto level = [&](const pb_sequence& s) { return level_of(s, step.raw.now_us); };
        patchbay::trade_seat(step, packer, level, [](const pb_sequence&) { return 0.0; });
        packer.keep_running([&](const pb_sequence& a, const pb_sequence& b) {
            return level(a) != level(b) ? level(a) > level(b) : patchbay::arrived_later(a, b);
        });
        patchbay::admit_by(step, packer, level);
    }

  private:
    // From the tokens taken so far and the rest of the prompt: long prompts skip the upper levels.
    double level_of(const pb_sequence& s, uint64_t now_us) const {
        const double taken = static_cast<double>(s.prompt_tokens) + s.output_tokens;
        const double fallen = std::min(std::ceil(std::max(0.0, std::log2(taken / quantum_))), levels_ - 1.0);
        const double waited = static_cast<double>(now_us - std::min(now_us, s.arrival_us));
        return std::max(0.0, fallen - (promote_us_ > 0 ? std::floor(waited / promote_us_) : 0));
    }

    uint32_t quantum_, levels_;
    double promote_us_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<FeedbackQueue>(
    {.name = "mlfq", .version = "1.0.0", .summary = "a feedback queue whose upper levels long prompts skip"}))
