// Plugins that keep their contract until their settings say otherwise: for the tests of what the engine does then.
#include <sstream>
#include <stdexcept>

#include "patchbay/sdk/proposer.hpp"
#include "patchbay/sdk/row_logprobs.hpp"
#include "patchbay/sdk/sampler.hpp"
#include "patchbay/sdk/step_packer.hpp"

namespace {

class Proposer { // the newest token once more
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::integer("fail_at", "0", 0, 1'000'000, "", "the call that fails; 0: none"),
    };
    explicit Proposer(const patchbay::Context& context) : fail_at_(context.get<int64_t>("fail_at")) {}

    void propose(patchbay::ProposeBatch& batch) {
        if (++calls_ == fail_at_) throw patchbay::Error(PB_FAILED, "fails on purpose");
        for (uint32_t i = 0; i < batch.size(); ++i)
            if (const auto tokens = batch.tokens(i); !tokens.empty() && batch.row(i).max_drafts > 0)
                batch.propose(i, tokens.last(1));
    }

  private:
    int64_t fail_at_, calls_ = 0;
};

class Foreteller { // drafts the tokens that it was given
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::integer("prompt", "0", 0, 1'000'000, "tokens", "length of the prompt"),
        patchbay::param::text("output", "", "the output's tokens, in decimals"),
    };
    explicit Foreteller(const patchbay::Context& context) : prompt_(context.get<uint32_t>("prompt")) {
        std::istringstream in(context.get<std::string>("output"));
        for (int32_t token; in >> token;) output_.push_back(token);
    }

    void propose(patchbay::ProposeBatch& batch) {
        for (uint32_t i = 0; i < batch.size(); ++i)
            if (const size_t made = batch.tokens(i).size() - std::min(prompt_, batch.tokens(i).size());
                made < output_.size())
                batch.propose(i, std::span<const int32_t>(output_).subspan(made));
    }

  private:
    size_t prompt_;
    std::vector<int32_t> output_;
};

class Scheduler { // first come, first served
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::boolean("overplans", "false", "plans every sequence whole, as if KV blocks never ran out"),
        patchbay::param::boolean("swaps", "false", "lets no sequence run twice in a row, and requests a swap"),
    };
    explicit Scheduler(const patchbay::Context& context)
        : overplans_(context.get<bool>("overplans")), swaps_(context.get<bool>("swaps")) {}

    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        if (overplans_) {
            for (const auto& list : {step.running, step.waiting})
                for (const pb_sequence& s : list) plan.run(s, patchbay::remaining(s));
            return;
        }
        if (swaps_ && step.running.size() > 0) {
            for (const pb_sequence& s : step.running) plan.preempt(s, PB_PREEMPT_SWAP);
            return;
        }
        patchbay::StepPacker packer(step, plan);
        packer.keep_running(patchbay::arrived_later);
        patchbay::admit_by(step, packer, [](const pb_sequence& s) { return static_cast<double>(s.arrival_us); });
    }

  private:
    bool overplans_, swaps_;
};

class Sampler { // the highest of the allowed logits
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::integer("bad_at", "-1", -1, 1'000'000, "", "the position that gets token 2³¹ − 1; −1: none"),
        patchbay::param::integer("fail_at", "0", 0, 1'000'000, "", "the call that fails; 0: none"),
        patchbay::param::boolean("judges", "true", "whether accepts() knows what to say"),
    };
    explicit Sampler(const patchbay::Context& context)
        : bad_at_(context.get<int64_t>("bad_at")), fail_at_(context.get<int64_t>("fail_at")),
          judges_(context.get<bool>("judges")) {}

    void accepts(const pb_sampling_params&) const {
        if (!judges_) throw std::runtime_error("fails on purpose");
    }

    void sample(patchbay::SampleBatch& batch) {
        if (++calls_ == fail_at_) throw patchbay::Error(PB_FAILED, "fails on purpose");
        for (uint32_t i = 0; i < batch.size(); ++i) {
            const auto logits = batch.logits(i);
            int32_t best = -1;
            for (size_t t = 0; t < logits.size(); ++t)
                if (patchbay::allowed(batch.row(i), t) && logits[t] > -INFINITY &&
                    (best < 0 || logits[t] > logits[static_cast<size_t>(best)]))
                    best = static_cast<int32_t>(t);
            if (best < 0) best = batch.fault(i);
            patchbay::write_logprobs(batch, i, best);
            batch.raw.tokens[i] = static_cast<int64_t>(batch.row(i).position) == bad_at_ ? INT32_MAX : best;
        }
    }

  private:
    int64_t bad_at_, fail_at_, calls_ = 0;
    bool judges_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<Scheduler>(
                    {.name = "fails_on_request", .version = "1.0.0", .summary = "for tests"}),
                patchbay::proposer<Proposer>({.name = "fails_on_request", .version = "1.0.0", .summary = "for tests"}),
                patchbay::proposer<Foreteller>({.name = "foretells", .version = "1.0.0", .summary = "for tests"}),
                patchbay::sampler<Sampler>({.name = "fails_on_request", .version = "1.0.0", .summary = "for tests"}))
