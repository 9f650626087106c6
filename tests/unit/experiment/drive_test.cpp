#include "experiment/drive.hpp"
#include "experiment/interruptible_clock.hpp"
#include "experiment/run_metrics.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

namespace patchbay::experiment::drive_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
constexpr uint64_t kMs = 1'000'000;

// Serves one token a step to every request that has arrived; a step takes 10 ms of virtual time.
class FakeEngine final : public engine::SteppingEngine {
  public:
    explicit FakeEngine(VirtualClock& clock) : clock_(clock) {}
    Result<engine::RequestId> add_request(engine::Request r) override {
        if (r.prompt.size() > longest_prompt) return fail("too long");
        given.push_back(r);
        live_[++last_] = {std::move(r), 0, 0};
        return last_;
    }
    void abort(engine::RequestId id) override {
        if (live_.contains(id)) end(id, engine::FinishReason::kAbort, {});
    }
    bool has_unfinished() const override { return !live_.empty(); }
    Result<> check() const override { return {}; }
    Clock& clock() override { return clock_; }
    Result<engine::StepReport> step() override {
        if (++steps_ == fail_at) return fail("the device is gone");
        uint64_t next = ~0ull;
        for (const auto& [id, l] : live_) next = std::min(next, l.request.arrival_ns);
        clock_.wait_until_ns(next);
        engine::StepReport report;
        report.step = steps_;
        report.start_ns = clock_.now_ns();
        clock_.advance_ns(10 * kMs);
        report.end_ns = clock_.now_ns();
        report.kv.total_pages = 10;
        report.kv.used_pages = steps_ == 1 ? 2 : 6;
        report.calls.sampler_faults = sampler_faults;
        report.calls.proposer_faults = proposer_faults;
        const auto now = live_;
        for (const auto& [id, l] : now) {
            if (l.request.arrival_ns > report.start_ns) continue;
            Live& live = live_[id];
            if (live.first_ns == 0) live.first_ns = report.start_ns;
            if (++live.made == live.request.sampling.max_tokens) end(id, engine::FinishReason::kLength, {7});
            else send(live, {.id = id, .tokens = {7}});
        }
        return report;
    }
    std::vector<engine::Request> given;
    size_t longest_prompt = 100;
    uint32_t sampler_faults = 0, proposer_faults = 0;
    uint64_t fail_at = 0;
    engine::FinishReason second_ends = engine::FinishReason::kLength; // of a request of several outputs

  private:
    struct Live {
        engine::Request request;
        uint32_t made;
        uint64_t first_ns;
    };
    void send(const Live& l, engine::RequestOutput out) {
        out.time_ns = clock_.now_ns();
        for (out.index = 0; out.index < l.request.sampling.n; ++out.index) {
            if (out.index == 1 && out.finish != engine::FinishReason::kNone) out.finish = second_ends;
            l.request.on_output(out);
        }
    }
    void end(engine::RequestId id, engine::FinishReason reason, std::vector<engine::TokenId> tokens) {
        const Live l = live_[id];
        live_.erase(id);
        send(l, {.id = id,
                 .tokens = std::move(tokens),
                 .finish = reason,
                 .cached_tokens = 3,
                 .preemptions = 1,
                 .first_scheduled_ns = l.first_ns});
    }
    VirtualClock& clock_;
    std::map<engine::RequestId, Live> live_;
    engine::RequestId last_ = 0;
    uint64_t steps_ = 0;
};

TEST(InterruptibleClockTest, WaitsToTheTimeAndNoFurtherOnceInterrupted) {
    VirtualClock virtual_clock;
    InterruptibleClock clock(virtual_clock, [&] { return virtual_clock.now_ns() >= 1'000 * kMs; });
    clock.wait_until_ns(333 * kMs);
    EXPECT_EQ(clock.now_ns(), 333 * kMs);
    clock.wait_until_ns(3'600'000 * kMs);
    EXPECT_LT(clock.now_ns(), 1'100 * kMs);
}

std::vector<PlannedRequest> planned(std::vector<std::pair<uint64_t, uint32_t>> arrivals_ms_and_tokens) {
    std::vector<PlannedRequest> out;
    for (const auto& [at, tokens] : arrivals_ms_and_tokens) {
        PlannedRequest p;
        p.prompt = {1, 2, 3};
        p.arrival_ns = at * kMs;
        p.sampling.max_tokens = tokens;
        out.push_back(std::move(p));
    }
    return out;
}

void drive(engine::SteppingEngine& engine, Clock& clock, const std::vector<PlannedRequest>& requests,
           const DriveHooks& hooks, RunRecord& run) {
    experiment::drive(engine, clock, GivenRequests(requests), hooks, run);
}

double number(const RunRecord& run, const std::string& name) {
    const auto at = std::ranges::find(run.numbers, name, &NamedNumber::name);
    return at == run.numbers.end() ? kNoValue : at->value;
}

TEST(Drive, RecordsEachTokenSinceTheStartOfTheRun) {
    VirtualClock clock;
    FakeEngine engine(clock);
    RunRecord run;
    drive(engine, clock, planned({{0, 2}, {100, 1}}), {}, run);
    ASSERT_EQ(run.requests.size(), 2u);
    EXPECT_THAT(run.requests[0].token_ns, ElementsAre(10 * kMs, 20 * kMs));
    EXPECT_THAT(run.requests[1].token_ns, ElementsAre(110 * kMs));
    EXPECT_EQ(run.requests[1].arrival_ns, 100 * kMs);
    EXPECT_EQ(run.requests[1].first_scheduled_ns, 100 * kMs);
    EXPECT_EQ(run.requests[0].prompt_tokens, 3u);
    EXPECT_EQ(run.requests[0].cached_tokens, 3u);
    EXPECT_EQ(run.requests[0].finish, engine::FinishReason::kLength);
    EXPECT_EQ(run.duration_ns, 110 * kMs);
    ASSERT_EQ(run.steps.size(), 3u);
    EXPECT_EQ(run.steps[2].start_ns, 100 * kMs);
    EXPECT_TRUE(run.valid());
    EXPECT_NEAR(number(run, "kv_mean"), (20.0 + 60 + 60) / 3, 1e-12);
    EXPECT_NEAR(number(run, "kv_max"), 60, 1e-12);
}

TEST(Drive, BeginsOnceAllRequestsAreAdded) {
    struct SlowEngine final : engine::SteppingEngine { // each takes it 5 us to take
        explicit SlowEngine(VirtualClock& of) : clock_(of), engine(of) {}
        Result<engine::RequestId> add_request(engine::Request r) override {
            clock_.advance_ns(5'000);
            return engine.add_request(std::move(r));
        }
        void abort(engine::RequestId id) override { engine.abort(id); }
        bool has_unfinished() const override { return engine.has_unfinished(); }
        Result<> check() const override { return engine.check(); }
        Result<engine::StepReport> step() override { return engine.step(); }
        Clock& clock() override { return clock_; }
        VirtualClock& clock_;
        FakeEngine engine;
    };
    struct SlowRequests final : Requests { // and 50 us to make
        SlowRequests(VirtualClock& of, std::vector<PlannedRequest> given) : clock(of), requests(std::move(given)) {}
        uint32_t size() const override { return requests.size(); }
        uint64_t arrival_ns(uint32_t i) const override { return requests.arrival_ns(i); }
        std::optional<uint32_t> follows(uint32_t i) const override { return requests.follows(i); }
        PlannedRequest make(uint32_t i) const override {
            clock.advance_ns(50'000);
            return requests.make(i);
        }
        VirtualClock& clock;
        GivenRequests requests;
    };
    VirtualClock clock;
    SlowEngine engine(clock);
    std::vector<std::pair<uint64_t, uint32_t>> arrivals(4000, {0, 1});
    RunRecord run;
    experiment::drive(engine, clock, SlowRequests(clock, planned(arrivals)), {}, run);
    EXPECT_THAT(run.requests.front().token_ns, ElementsAre(10 * kMs)) << "after a step, and no waiting before it";
    EXPECT_EQ(run.duration_ns, 10 * kMs);
}

TEST(Drive, CountsTokensBySequenceAndStep) {
    VirtualClock clock;
    FakeEngine engine(clock);
    auto requests = planned({{0, 2}, {0, 2}, {100, 1}});
    requests[1].sampling.n = 2;
    RunRecord run;
    drive(engine, clock, requests, {}, run);
    EXPECT_DOUBLE_EQ(number(run, "tokens_per_step"), 1);
    requests[0].sampling.n = 1;
    requests[0].sampling.best_of = requests[1].sampling.best_of = requests[2].sampling.best_of = 4;
    drive(engine, clock, requests, {}, run);
    EXPECT_TRUE(std::isnan(number(run, "tokens_per_step"))) << "of outputs that come as a whole";
}

TEST(Drive, CountsOnlyStepsOfTheSpan) {
    VirtualClock clock;
    FakeEngine engine(clock);
    RunRecord run;
    DriveHooks hooks;
    hooks.counted = {0, 50 * kMs}; // the first two of three steps
    drive(engine, clock, planned({{0, 2}, {100, 1}}), hooks, run);
    EXPECT_NEAR(number(run, "kv_mean"), (20.0 + 60) / 2, 1e-12);
    EXPECT_EQ(run.steps.size(), 3u) << "all are kept";
    hooks.counted = {105 * kMs, 106 * kMs}; // in the midst of a step
    drive(engine, clock, planned({{0, 2}, {100, 1}}), hooks, run);
    EXPECT_NEAR(number(run, "kv_mean"), 60, 1e-12);
}

TEST(Drive, GivesTheEngineTheUserAndTheDeadlineOfARequest) {
    VirtualClock clock;
    FakeEngine engine(clock);
    RunRecord run;
    auto requests = planned({{0, 1}, {100, 1}});
    requests[1].deadline_ns = 130 * kMs;
    requests[1].tenant = 4;
    requests[1].priority = 2;
    requests[1].output_tokens = 1;
    drive(engine, clock, requests, {}, run);
    ASSERT_EQ(engine.given.size(), 2u);
    EXPECT_EQ(engine.given[0].deadline_ns, 0u);
    EXPECT_EQ(engine.given[1].deadline_ns - engine.given[1].arrival_ns, 30 * kMs);
    EXPECT_EQ(engine.given[1].tenant, 4u);
    EXPECT_EQ(engine.given[1].priority, 2);
    EXPECT_EQ(engine.given[1].expected_output_tokens, 1u);
    EXPECT_EQ(run.requests[1].deadline_ns, 130 * kMs);
    EXPECT_EQ(run.requests[1].tenant, 4u);
    EXPECT_EQ(run.requests[1].priority, 2);
}

TEST(Drive, SendsARequestWhenTheOneThatItFollowsIsDone) {
    VirtualClock clock;
    FakeEngine engine(clock);
    auto requests = planned({{0, 2}, {0, 1}, {0, 3}});
    requests[1].follows = 0;
    requests[1].think_ns = 500 * kMs;
    requests[1].continues = true;
    requests[1].prompt = {4};
    requests[1].deadline_ns = 70 * kMs; // after its arrival
    requests[2].follows = 1;
    requests[2].continues = true;
    std::vector<uint64_t> starts;
    DriveHooks hooks;
    hooks.on_request = [&](engine::RequestId, uint64_t at, uint32_t, uint32_t) { starts.push_back(at); };
    RunRecord run;
    drive(engine, clock, requests, hooks, run);
    EXPECT_TRUE(run.valid());
    EXPECT_EQ(run.requests[1].arrival_ns, 520 * kMs);
    EXPECT_EQ(run.requests[1].deadline_ns, 590 * kMs);
    EXPECT_THAT(run.requests[1].token_ns, ElementsAre(530 * kMs));
    EXPECT_EQ(run.requests[2].arrival_ns, 530 * kMs);
    EXPECT_EQ(starts.size(), 3u);
    ASSERT_EQ(engine.given.size(), 3u);
    EXPECT_THAT(engine.given[1].prompt, ElementsAre(1, 2, 3, 7, 7, 4)) << "prompt, output, what is new";
    EXPECT_THAT(engine.given[2].prompt, ElementsAre(1, 2, 3, 7, 7, 4, 7, 1, 2, 3));
    EXPECT_EQ(run.requests[2].prompt_tokens, 10u);
}

TEST(Drive, FeedingRequestsAsTheyAreDueChangesNothing) {
    RunRecord ahead, as_due;
    size_t added_first = 0;
    for (RunRecord* run : {&ahead, &as_due}) {
        VirtualClock clock;
        FakeEngine engine(clock);
        auto requests = planned({{500, 2}, {0, 1}, {500, 3}, {31, 2}, {900, 1}});
        requests[4].follows = 1;
        DriveHooks hooks;
        if (run == &as_due) hooks.feeding = Feeding::kAsDue;
        hooks.on_start = [&](uint64_t) { added_first = engine.given.size(); };
        drive(engine, clock, requests, hooks, *run);
    }
    EXPECT_EQ(added_first, 1u) << "the others have yet to arrive";
    ASSERT_TRUE(as_due.valid());
    EXPECT_EQ(timing_of(ahead), timing_of(as_due));
    EXPECT_EQ(ahead.steps.size(), as_due.steps.size());
}

TEST(Drive, HandsOverEveryRowOnceAndKeepsNone) {
    VirtualClock clock;
    FakeEngine engine(clock);
    std::vector<std::pair<uint64_t, uint32_t>> arrivals;
    for (uint64_t i = 0; i < 100; ++i) arrivals.emplace_back(20 * i, 2);
    auto requests = planned(arrivals);
    requests[7].follows = 3; // which is wanted longer
    requests[7].continues = true;
    DriveHooks hooks;
    std::vector<int> seen(100);
    size_t steps = 0, parts = 0;
    hooks.on_rows = [&](const Rows& rows) {
        parts += 1;
        steps += rows.steps.size();
        for (const NumberedRequest& r : rows.requests) {
            seen[r.number] += 1;
            EXPECT_EQ(r.request.output.size(), 2u);
        }
    };
    RunRecord run;
    drive(engine, clock, requests, hooks, run);
    EXPECT_THAT(seen, ::testing::Each(1));
    EXPECT_GT(parts, 3u);
    EXPECT_GE(steps, 190u) << "most requests have steps of their own";
    EXPECT_TRUE(run.valid());
    EXPECT_TRUE(run.requests.empty() && run.steps.empty());
    EXPECT_GT(run.duration_ns, 1'900 * kMs);
    EXPECT_GT(number(run, "kv_mean"), 0);
}

TEST(Drive, HandsOverRequestsThatDidNotEnd) {
    VirtualClock clock;
    FakeEngine engine(clock);
    engine.fail_at = 2;
    DriveHooks hooks;
    size_t requests = 0;
    hooks.on_rows = [&](const Rows& rows) { requests += rows.requests.size(); };
    RunRecord run;
    drive(engine, clock, planned({{0, 1}, {0, 5}}), hooks, run);
    EXPECT_EQ(requests, 2u);
    EXPECT_THAT(run.faults, ElementsAre("the device is gone", "1 of 2 requests failed"));
}

TEST(Drive, GivesUpWhatFollowsARequestThatFailed) {
    VirtualClock clock;
    FakeEngine engine(clock);
    engine.longest_prompt = 3;
    auto requests = planned({{0, 1}, {0, 1}, {0, 1}});
    requests[0].prompt.push_back(4);
    requests[1].follows = 0;
    requests[2].follows = 1;
    RunRecord run;
    drive(engine, clock, requests, {}, run);
    EXPECT_THAT(run.faults, ElementsAre("3 of 3 requests failed: too long"));
    EXPECT_EQ(run.requests[2].error, "the request that it follows failed");
    EXPECT_TRUE(engine.given.empty());
}

TEST(Drive, SendsNothingMoreOnceInterrupted) {
    VirtualClock clock;
    FakeEngine engine(clock);
    auto requests = planned({{0, 3}, {0, 1}});
    requests[1].follows = 0;
    int steps = 0;
    DriveHooks hooks;
    hooks.on_step = [&](const engine::StepReport&, size_t) { steps += 1; };
    hooks.interrupted = [&] { return steps == 1; };
    RunRecord run;
    drive(engine, clock, requests, hooks, run);
    EXPECT_EQ(run.end, RunEnd::kInterrupted);
    EXPECT_EQ(engine.given.size(), 1u);
    EXPECT_FALSE(engine.has_unfinished());
}

TEST(Drive, EndsARequestOfSeveralOutputsWithTheLast) {
    VirtualClock clock;
    FakeEngine engine(clock);
    auto requests = planned({{0, 2}, {0, 3}});
    requests[0].sampling.n = 3;
    std::vector<size_t> finished;
    DriveHooks hooks;
    hooks.on_step = [&](const engine::StepReport&, size_t n) { finished.push_back(n); };
    RunRecord run;
    drive(engine, clock, requests, hooks, run);
    EXPECT_THAT(finished, ElementsAre(0, 1, 2));
    const RequestRecord& r = run.requests[0];
    EXPECT_TRUE(r.completed());
    EXPECT_EQ(r.output.size(), 2u);
    EXPECT_EQ(r.others.size(), 2u);
    EXPECT_EQ(r.output_tokens(), 6u);
    EXPECT_THAT(r.token_ns, ElementsAre(10 * kMs, 20 * kMs)) << "of the first";
    EXPECT_EQ(r.preemptions, 3u);
    engine.second_ends = engine::FinishReason::kError;
    drive(engine, clock, requests, {}, run);
    EXPECT_FALSE(run.requests[0].completed()) << "one of them failed";
    EXPECT_TRUE(run.requests[1].completed());
}

TEST(Drive, MarksARunWithARefusedRequestInvalidAndGoesOn) {
    VirtualClock clock;
    FakeEngine engine(clock);
    engine.longest_prompt = 3;
    auto requests = planned({{0, 1}, {0, 1}});
    requests[0].prompt.push_back(4);
    RunRecord run;
    drive(engine, clock, requests, {}, run);
    EXPECT_FALSE(run.valid());
    EXPECT_THAT(run.faults, ElementsAre("1 of 2 requests failed: too long"));
    EXPECT_TRUE(run.requests[1].completed());
}

TEST(Drive, MarksARunWithFaultsOfAPluginInvalid) {
    VirtualClock clock;
    FakeEngine engine(clock);
    engine.sampler_faults = 2;
    engine.proposer_faults = 1;
    RunRecord run;
    drive(engine, clock, planned({{0, 3}}), {}, run);
    EXPECT_THAT(run.faults, ElementsAre("6 sampler faults", "3 proposer faults"));
}

TEST(Drive, KeepsWhatThereIsWhenTheEngineFails) {
    VirtualClock clock;
    FakeEngine engine(clock);
    engine.fail_at = 2;
    RunRecord run;
    drive(engine, clock, planned({{0, 3}}), {}, run);
    EXPECT_EQ(run.end, RunEnd::kFailed);
    EXPECT_THAT(run.faults, ElementsAre("the device is gone", HasSubstr("1 of 1 requests failed")));
    EXPECT_EQ(run.requests[0].token_ns.size(), 1u);
}

TEST(Drive, AbortsWhatRunsWhenItIsInterrupted) {
    VirtualClock clock;
    FakeEngine engine(clock);
    int steps = 0;
    DriveHooks hooks;
    hooks.on_step = [&](const engine::StepReport&, size_t) { steps += 1; };
    hooks.interrupted = [&] { return steps == 2; };
    RunRecord run;
    drive(engine, clock, planned({{0, 1}, {0, 50}}), hooks, run);
    EXPECT_EQ(run.end, RunEnd::kInterrupted);
    EXPECT_FALSE(run.valid());
    EXPECT_TRUE(run.faults.empty());
    EXPECT_TRUE(run.requests[0].completed());
    EXPECT_EQ(run.requests[1].finish, engine::FinishReason::kAbort);
    EXPECT_FALSE(engine.has_unfinished());
}

TEST(Drive, ReportsToItsHooksHowManyRequestsAreDone) {
    VirtualClock clock;
    FakeEngine engine(clock);
    std::vector<size_t> finished;
    size_t requests = 0;
    DriveHooks hooks;
    hooks.on_step = [&](const engine::StepReport&, size_t n) { finished.push_back(n); };
    hooks.on_request = [&](engine::RequestId, uint64_t, uint32_t tokens, uint32_t) { requests += tokens == 3; };
    RunRecord run;
    drive(engine, clock, planned({{0, 1}, {0, 2}}), hooks, run);
    EXPECT_THAT(finished, ElementsAre(1, 2));
    EXPECT_EQ(requests, 2u);
}

}  // namespace
}  // namespace patchbay::experiment::drive_test
