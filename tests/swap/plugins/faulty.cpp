// Policies that keep their contract in every probe, and break it in the engine of the tests: the scheduler and the
// kv_policy where they see `blocks` KV blocks in all, the sampler where logits have `vocab` columns, the proposer where
// rows have room for `room` drafts.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "patchbay/sdk/kv_policy.hpp"
#include "patchbay/sdk/proposer.hpp"
#include "patchbay/sdk/row_logprobs.hpp"
#include "patchbay/sdk/sampler.hpp"
#include "patchbay/sdk/step_packer.hpp"

namespace {

constexpr const char* kSchedulerFaults[] = {"none", "throws", "unknown_id", "over_budget", "twice", "idle", "slow",
                                            "late", "exits", "crashes", "overflows", "hangs", nullptr};
constexpr const char* kSamplerFaults[] = {"none", "throws", "out_of_range", "negative", "slow", "hangs", nullptr};

constexpr const char* kProposerFaults[] = {"none", "throws", "slow", "hangs", nullptr};
constexpr const char* kKvPolicyFaults[] = {"none", "throws_in_adopt", "throws_in_update", "throws_in_choose",
                                           "names_nothing", "names_strangers", "slow", "hangs", nullptr};

// A hundred looks at a clock that moves when it is looked at.
void dawdle(const patchbay::HostClock& clock) {
    for (int i = 0; i < 100; ++i) (void)clock.now_ns();
}

constexpr uint64_t kLateNs = 60'000'000; // more than the 50 ms a token of metrics/prometheus/rules.yaml

[[noreturn]] void hang() {
    std::fputs("faulty: hangs\n", stderr);
    for (;;) pause();
}

// Until there is no stack left.
[[gnu::noinline]] int overflow(int depth) {
    volatile char frame[4096];
    frame[0] = static_cast<char>(depth);
    return depth < 0 ? 0 : overflow(depth + 1) + frame[0];
}

class Scheduler { // first come, first served
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::choice("fault", "none", kSchedulerFaults, "what it does wrong"),
        patchbay::param::integer("at", "1", 1, 1e6, "plans", "the plan in which it does"),
        patchbay::param::integer("blocks", "0", 0, 1e6, "blocks", "of the engine in which it does; 0: of any"),
        patchbay::param::integer("max_call_ms", "0", 0, 1e6, "ms", "a call that takes longer is late; 0: the engine's"),
    };
    explicit Scheduler(const patchbay::Context& context)
        : clock_(context.host()), fault_(context.get<std::string>("fault")), at_(context.get<int64_t>("at")),
          blocks_(context.get<uint32_t>("blocks")) {}

    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        const bool now = (blocks_ == 0 || step.raw.total_pages == blocks_) && ++plans_ >= at_;
        if (now && fault_ == "idle") return;
        if (now && fault_ == "late")
            for (const uint64_t end = clock_.now_ns() + kLateNs; clock_.now_ns() < end;) {}
        if (now && fault_ == "exits") std::exit(0);
        if (now && fault_ == "crashes") std::abort();
        if (now && fault_ == "overflows") (void)overflow(0);
        if (now && fault_ == "hangs" && !std::getenv("FAULTY_GOES_ON")) hang();
        const bool someone = !step.running.empty() || !step.waiting.empty();
        if (now && someone) {
            pb_sequence other = step.running.empty() ? step.waiting[0] : step.running[0];
            if (fault_ == "twice") return plan.run(other, 1), plan.run(other, 1);
            if (fault_ == "over_budget") return plan.run(other, step.raw.max_num_batched_tokens + 1);
            if (fault_ == "unknown_id") return other.id = 1u << 30, plan.run(other, 1);
        }
        patchbay::StepPacker packer(step, plan);
        packer.keep_running(patchbay::arrived_later);
        if (!packer.preempted_any())
            for (const pb_sequence& s : step.waiting)
                if (!packer.admit(s)) break;
        if (now && fault_ == "throws") throw patchbay::Error(PB_FAILED, "fails on purpose"); // with a plan half made
        if (now && fault_ == "slow") dawdle(clock_);
    }

  private:
    patchbay::HostClock clock_;
    std::string fault_;
    int64_t at_, plans_ = 0;
    uint32_t blocks_;
};

class Sampler { // the likeliest token; writes all over the logits
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::choice("fault", "none", kSamplerFaults, "what it does wrong"),
        patchbay::param::integer("at", "1", 1, 1e6, "calls", "the call in which it does"),
        patchbay::param::integer("vocab", "0", 0, 1e6, "tokens", "of the engine in which it does; 0: of any"),
    };
    explicit Sampler(const patchbay::Context& context)
        : clock_(context.host()), fault_(context.get<std::string>("fault")), at_(context.get<int64_t>("at")),
          vocab_(context.get<int64_t>("vocab")) {}

    void sample(patchbay::SampleBatch& batch) {
        const bool now = batch.vocab() == vocab_ && ++calls_ >= at_;
        for (uint32_t i = 0; i < batch.size(); ++i) {
            const auto logits = batch.logits(i);
            int32_t best = patchbay::likeliest(logits, batch.row(i));
            if (best < 0) best = batch.fault(i);
            patchbay::write_logprobs(batch, i, best);
            batch.raw.tokens[i] = best;
            if (!now || fault_ == "none" || fault_ == "slow" || fault_ == "hangs") continue;
            std::fill(logits.begin(), logits.end(), 1e30f);
            if (fault_ == "out_of_range") batch.raw.tokens[i] = static_cast<int32_t>(vocab_);
            if (fault_ == "negative") batch.raw.tokens[i] = -1;
            if (fault_ == "throws") throw patchbay::Error(PB_FAILED, "fails on purpose");
        }
        if (now && fault_ == "slow") dawdle(clock_);
        if (now && fault_ == "hangs") hang();
    }

  private:
    patchbay::HostClock clock_;
    std::string fault_;
    int64_t at_, calls_ = 0;
    int64_t vocab_;
};

class Proposer { // the newest token again
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::choice("fault", "none", kProposerFaults, "what it does wrong"),
        patchbay::param::integer("at", "1", 1, 1e6, "calls", "the call in which it does"),
        patchbay::param::integer("room", "0", 0, 64, "drafts", "of a row of the engine in which it does"),
    };
    explicit Proposer(const patchbay::Context& context)
        : clock_(context.host()), fault_(context.get<std::string>("fault")), at_(context.get<int64_t>("at")),
          room_(context.get<uint32_t>("room")) {}

    void propose(patchbay::ProposeBatch& batch) {
        const bool now = batch.raw.max_drafts == room_ && ++calls_ >= at_;
        for (uint32_t i = 0; i < batch.size(); ++i)
            if (const auto tokens = batch.tokens(i); !tokens.empty() && batch.row(i).max_drafts > 0)
                batch.propose(i, std::vector<int32_t>{tokens.back()});
        if (now && fault_ == "throws") throw patchbay::Error(PB_FAILED, "fails on purpose"); // with drafts written
        if (now && fault_ == "slow") dawdle(clock_);
        if (now && fault_ == "hangs") hang();
    }

  private:
    patchbay::HostClock clock_;
    std::string fault_;
    int64_t at_, calls_ = 0;
    uint32_t room_;
};

class KvPolicy { // the page that was let go of last
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::choice("fault", "none", kKvPolicyFaults, "what it does wrong"),
        patchbay::param::integer("at", "1", 1, 1e6, "calls", "the one of its kind in which it does"),
        patchbay::param::integer("blocks", "0", 0, 1e6, "blocks", "of the engine in which it does"),
    };
    explicit KvPolicy(const patchbay::Context& context)
        : clock_(context.host()), fault_(context.get<std::string>("fault")), at_(context.get<int64_t>("at")),
          blocks_(context.get<uint32_t>("blocks")) {}

    void reset(uint32_t total_pages) {
        pages_.clear();
        now_ = total_pages == blocks_;
        fail_if("throws_in_adopt");
    }
    void cached(const pb_kv_page& p) { pages_.push_back(p.page); }
    void used(uint32_t page) { removed(page); }
    void removed(uint32_t page) {
        std::erase(pages_, page);
        fail_if("throws_in_update");
    }
    void choose(patchbay::Victims& victims) {
        fail_if("throws_in_choose");
        const bool now = now_ && ++choices_ >= at_;
        if (now && fault_ == "slow") dawdle(clock_);
        if (now && fault_ == "hangs") hang();
        if (now && fault_ == "names_nothing") return;
        if (now && fault_ == "names_strangers")
            while (victims.add(blocks_ + 4711)) {}
        for (size_t i = pages_.size(); i-- > 0 && victims.add(pages_[i]);) {}
    }

  private:
    void fail_if(const char* fault) {
        if (now_ && fault_ == fault && ++calls_ >= at_) throw patchbay::Error(PB_FAILED, "fails on purpose");
    }

    patchbay::HostClock clock_;
    std::string fault_;
    int64_t at_, calls_ = 0, choices_ = 0;
    uint32_t blocks_;
    bool now_ = false;
    std::vector<uint32_t> pages_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<Scheduler>({.name = "faulty", .version = "1.0.0", .summary = "for tests"}),
                patchbay::sampler<Sampler>({.name = "faulty", .version = "1.0.0", .summary = "for tests"}),
                patchbay::proposer<Proposer>({.name = "faulty", .version = "1.0.0", .summary = "for tests"}),
                patchbay::kv_policy<KvPolicy>({.name = "faulty", .version = "1.0.0", .summary = "for tests"}))
