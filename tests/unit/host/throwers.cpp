// One component a kind that throws, as `what` says and when `at` says: what a user's bug looks like from the host.
#include "patchbay/sdk/proposer.hpp"
#include "patchbay/sdk/sampler.hpp"
#include "patchbay/sdk/scheduler.hpp"
#include "patchbay/sdk/step_packer.hpp"

namespace {

constexpr const char* kWhats[] = {"error", "exception", "number", nullptr};
constexpr const char* kTimes[] = {"create", "call", "notice", "never", nullptr};

class Thrower {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::choice("what", "exception", kWhats, "what is thrown"),
        patchbay::param::choice("at", "call", kTimes, "when"),
    };

  protected:
    explicit Thrower(const patchbay::Context& context)
        : what_(context.get<std::string>("what")), at_(context.get<std::string>("at")) {
        maybe("create");
    }
    void maybe(std::string_view now) const {
        if (now != at_) return;
        if (what_ == "error") throw patchbay::Error(PB_UNAVAILABLE, "out of patience");
        if (what_ == "exception") throw std::out_of_range("index 7 of 3");
        throw 42;
    }

  private:
    std::string what_, at_;
};

class Scheduler : Thrower {
  public:
    using Thrower::kParams;
    explicit Scheduler(const patchbay::Context& context) : Thrower(context), metrics_(context.host()) {}
    void arrived(const pb_sequence&) {
        metrics_.add("arrivals", 1);
        maybe("notice");
    }
    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        packer.keep_running(patchbay::arrived_later);
        patchbay::admit_by(step, packer, [](const pb_sequence& s) { return s.arrival_us; });
        maybe("call");  // with a plan half written
    }

  private:
    patchbay::Metrics metrics_;
};

class Sampler : Thrower {
  public:
    using Thrower::kParams;
    explicit Sampler(const patchbay::Context& context) : Thrower(context) {}
    void sample(patchbay::SampleBatch& batch) {
        for (uint32_t i = 0; i < batch.size(); ++i) batch.raw.tokens[i] = 1;
        maybe("call");
    }
};

class Proposer : Thrower {
  public:
    using Thrower::kParams;
    explicit Proposer(const patchbay::Context& context) : Thrower(context) {}
    void propose(patchbay::ProposeBatch&) { maybe("call"); }
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<Scheduler>({.name = "thrower", .version = "1.0.0", .summary = "throws"}),
                patchbay::sampler<Sampler>({.name = "thrower", .version = "1.0.0", .summary = "throws"}),
                patchbay::proposer<Proposer>({.name = "thrower", .version = "1.0.0", .summary = "throws"}))
