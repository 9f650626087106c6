// frozen - the shortest uncached prompt first, with ageing; its outputs' mean length is a metric and its saved state.
// It uses all that a scheduler of the contract has: every hook, a hot parameter, state, log, metrics, clock.
#include "patchbay/sdk/step_packer.hpp"

namespace {

class Frozen {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::real("ageing", "100", 0, 1e9, "tokens/s", "how much shorter a prompt counts for each second",
                              PB_PARAM_HOT),
        patchbay::param::boolean("swaps", "false", "what is preempted is to go to host memory")};

    explicit Frozen(const patchbay::Context& context)
        : metrics_(context.host()), clock_(context.host()), swaps_(context.get<bool>("swaps")) {
        configure(context);
        patchbay::log(context.host(), PB_LOG_DEBUG, clock_ ? "there is a clock" : "there is no clock");
    }
    void configure(const patchbay::Context& context) { ageing_ = context.get<double>("ageing"); }

    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        packer.keep_running(patchbay::arrived_later);
        patchbay::admit_by(step, packer, [&](const pb_sequence& s) {
            const double waited_s = 1e-6 * static_cast<double>(step.raw.now_us - s.arrival_us);
            return patchbay::uncached(s) - ageing_ * waited_s;
        });
        if (swaps_ && step.raw.running_count == 1 && step.raw.waiting_count == 0 && plan.size() == 0)
            plan.preempt(step.running[0], PB_PREEMPT_SWAP);
    }

    void arrived(const pb_sequence&) { known_ += 1; }
    void resync(const patchbay::SchedulerStep& step) { known_ = step.running.size() + step.waiting.size(); }
    void finished(const pb_finished& f) {
        known_ -= 1;
        if (f.reason != PB_FINISH_STOP && f.reason != PB_FINISH_LENGTH) return;
        mean_ += (f.output_tokens - mean_) / static_cast<double>(++ended_);
        metrics_.add("ended");
        metrics_.set("mean_output_tokens", mean_);
    }

    void save(patchbay::Writer& w) const {
        w.put("ended", ended_);
        w.put("mean", mean_);
    }
    void load(const patchbay::Reader& r) {
        r.get("ended", ended_);
        r.get("mean", mean_);
    }

  private:
    patchbay::Metrics metrics_;
    patchbay::HostClock clock_;
    bool swaps_;
    double ageing_ = 0, mean_ = 0;
    uint64_t known_ = 0, ended_ = 0;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<Frozen>(
    {.name = "frozen", .version = "1.0.0", .summary = "the shortest prompt first, with ageing", .state = "frozen/1"}))
