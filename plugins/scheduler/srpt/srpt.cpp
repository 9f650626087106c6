// srpt - the shortest remaining work first, prompt and output, by a predictor of the output's length.
#include <bit>
#include <unordered_map>

#include "patchbay/sdk/step_packer.hpp"

namespace {

constexpr const char* kPredictors[] = {"oracle", "constant", "history", nullptr};

class ShortestRemaining {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::choice("predictor", "history", kPredictors,
                                "of outputs: what their senders say, one length for all, or the mean of those that "
                                "ended whose prompts were as long", PB_PARAM_HOT),
        patchbay::param::integer("output", "128", 1, 1 << 20, "tokens", "the constant, and the default estimate",
                                 PB_PARAM_HOT),
        patchbay::param::boolean("preempt", "true",
                                 "a running request gives its seat to shorter work that waits, one a step",
                                 PB_PARAM_HOT),
        patchbay::param::real("ageing", "10", 0, 1e9, "tokens/s", "by how much work shrinks from its arrival on",
                              PB_PARAM_HOT)};

    explicit ShortestRemaining(const patchbay::Context& context) { configure(context); }
    void configure(const patchbay::Context& context) {
        predictor_ = context.get<std::string>("predictor");
        output_ = context.get<uint32_t>("output");
        preempt_ = context.get<bool>("preempt");
        ageing_ = context.get<double>("ageing");
    }

    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        const auto now = static_cast<double>(step.raw.now_us);
        // Ages while waiting and running: otherwise old requests would be admitted and then preempted for new ones.
        const auto work = [&](const pb_sequence& s) {
            return to_compute(s) + output_left(s) -
                   ageing_ * 1e-6 * (now - static_cast<double>(s.arrival_us));
        };
        // A preempted request computes all of its tokens again.
        const auto price = [](const pb_sequence& s) { return static_cast<double>(s.computed_tokens); };
        if (preempt_) patchbay::trade_seat(step, packer, work, price);
        packer.keep_running([&](const pb_sequence& a, const pb_sequence& b) {
            return work(a) != work(b) ? work(a) > work(b) : patchbay::arrived_later(a, b);
        });
        patchbay::admit_by(step, packer, work);
    }

    void arrived(const pb_sequence& s) { length_[s.id] = std::bit_width(s.prompt_tokens); }
    void resync(const patchbay::SchedulerStep& step) {
        length_.clear();
        for (const auto* all : {&step.running, &step.waiting})
            for (const pb_sequence& s : *all) arrived(s);
    }
    void finished(const pb_finished& f) {
        const auto node = length_.extract(f.id);
        const bool is_whole = f.reason == PB_FINISH_STOP || f.reason == PB_FINISH_LENGTH; // others would have gone on
        if (node.empty() || !is_whole || f.output_tokens == 0) return; // an embedding says nothing about texts
        Mean& mean = means_[static_cast<size_t>(node.mapped())];
        mean.value += (f.output_tokens - mean.value) / ++mean.count;
    }

  private:
    struct Mean {
        double value = 0, count = 0;
    };

    // One that waits finds its cached tokens; of one that runs they are computed already.
    static double to_compute(const pb_sequence& s) {
        const bool waits = s.computed_tokens == 0 && s.in_flight == 0;
        return waits ? patchbay::uncached(s) : patchbay::remaining(s);
    }

    double output_left(const pb_sequence& s) const {
        double expected = output_;
        if (predictor_ == "oracle" && s.expected_output_tokens > 0) expected = s.expected_output_tokens;
        const Mean& mean = means_[static_cast<size_t>(std::bit_width(s.prompt_tokens))];
        if (predictor_ == "history" && mean.count > 0) expected = mean.value;
        return std::max(1.0, expected - s.output_tokens);
    }

    std::string predictor_;
    uint32_t output_;
    bool preempt_;
    double ageing_;
    std::unordered_map<uint64_t, int> length_; // length of the prompt, in bits
    Mean means_[33];                           // by length_
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<ShortestRemaining>(
    {.name = "srpt", .version = "1.0.0", .summary = "the shortest remaining work first, by a predictor"}))
