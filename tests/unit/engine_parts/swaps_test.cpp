// Swaps as the loop sees them: who is let in, who stays, and what the record says of it.
#include "engine/swap/swaps.hpp"

#include <gmock/gmock.h>

#include "engine/scheduling/scheduler_view.hpp"
#include "engine/swap/swap_ports.hpp"
#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::swaps_test {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using host::SwapState;

host::Identity named(const char* kind, const char* name) {
    return {.kind = kind, .name = name, .version = "1.0.0", .sha256 = {}, .build = {}, .path = {}};
}

struct Bench : RowNeighbours {
    explicit Bench(config::SwapSettings s = {.probation_steps = 2, .max_call_ms = 1000})
        : RowNeighbours(), swap_settings(s) {
        plugins = {named("scheduler", "fake"), named("sampler", "fake")};
        scheduler.connect(view);
    }
    template <class T>
    T& post(host::Slot& slot, const pb_component& type, const char* kind) {
        Played<T> next = play<T>(type);
        pending = slot.line().prepare(std::move(next.component), named(kind, "next"));
        slot.line().post(pending);
        return next.policy;
    }
    std::vector<SwapState> states() {
        std::vector<SwapState> out;
        for (const host::SwapRecord& r : report().swaps) out.push_back(r.state);
        return out;
    }

    config::SwapSettings swap_settings;
    PressureMonitor pressure;
    SchedulerView view{settings, sequences, kv, hints, beams.room(), pressure};
    SamplerPort sampler{kVocab, clock, context, journal};
    FakeSampler& sampling = install<FakeSampler>(sampler.slot(), kFakeSampler);
    config::SpeculationSettings speculation;
    SchedulerSwaps scheduler_swaps{scheduler, context};
    SamplerSwaps sampler_swaps{sampler, {sequences, prompt_logprobs, executor, speculation, context}};
    Swaps part{{swap_settings, {&scheduler_swaps, &sampler_swaps}, journal, context, clock}};
    std::shared_ptr<host::Swap> pending;
};

TEST(Swaps, ASchedulerIsLetInAtTheBoundaryAndShownAllThereIs) {
    Bench b;
    b.run(4, 4);
    b.wait(4);
    b.wait(4);
    FakeScheduler& next = b.post<FakeScheduler>(b.scheduler.slot(), kFakeScheduler, "scheduler");
    EXPECT_FALSE(b.part.step_may_be_redone());
    b.part.at_boundary(false);
    EXPECT_TRUE(b.part.step_may_be_redone());
    EXPECT_THAT(next.resyncs, ElementsAre(Pair(1, 2)));
    EXPECT_THAT(b.states(), ElementsAre(SwapState::kOnProbation));
    EXPECT_EQ(b.plugins[0].name, "next");
    EXPECT_EQ(b.plugins[1].name, "fake");
}

TEST(Swaps, BothHearOfSequencesDuringProbation) {
    Bench b;
    FakeScheduler& next = b.post<FakeScheduler>(b.scheduler.slot(), kFakeScheduler, "scheduler");
    b.part.at_boundary(false);
    Sequence& s = b.wait(4);
    EXPECT_THAT(next.arrived, ElementsAre(s.id));
    EXPECT_THAT(b.policy.arrived, ElementsAre(s.id));
}

TEST(Swaps, ProbationCountsTheStepsInWhichOneWasCalled) {
    Bench b;
    b.post<FakeScheduler>(b.scheduler.slot(), kFakeScheduler, "scheduler");
    b.part.at_boundary(false);
    b.part.end_step({true, false});
    b.part.end_step({false, true}); // it was not asked for a plan
    EXPECT_TRUE(b.part.step_may_be_redone());
    b.part.end_step({true, false});
    EXPECT_FALSE(b.part.step_may_be_redone());
    EXPECT_THAT(b.states(), ElementsAre(SwapState::kOnProbation, SwapState::kCommitted));
    EXPECT_EQ(b.plugins[0].name, "next");
}

TEST(Swaps, ACallThatTakesTooLongBringsThePredecessorBack) {
    Bench b;
    b.post<FakeSampler>(b.sampler.slot(), kFakeSampler, "sampler");
    b.part.at_boundary(false);
    b.report().calls.sample_ns = 1'000'000'000;
    b.part.end_step({true, true});
    EXPECT_TRUE(b.part.step_may_be_redone()) << "so long it may take";
    b.report().calls.sample_ns = 1'234'000'000;
    b.part.end_step({true, true});
    EXPECT_FALSE(b.part.step_may_be_redone());
    const host::SwapRecord& r = b.report().swaps.back();
    EXPECT_EQ(r.state, SwapState::kRolledBack);
    EXPECT_EQ(r.phase, "time");
    EXPECT_EQ(r.reason, "sample took 1234 ms, more than max_call_ms of 1000");
    EXPECT_EQ(b.plugins[1].name, "fake");
}

TEST(Swaps, WithoutABoundACallMayTakeAnyTime) {
    Bench b({.probation_steps = 1, .max_call_ms = 0});
    b.post<FakeScheduler>(b.scheduler.slot(), kFakeScheduler, "scheduler");
    b.part.at_boundary(false);
    b.report().calls.plan_ns = UINT64_MAX;
    b.part.end_step({true, false});
    EXPECT_THAT(b.states(), ElementsAre(SwapState::kOnProbation, SwapState::kCommitted));
}

TEST(Swaps, ASamplerThatCannotServeARequestThatIsThereGivesItsPlaceBackAtOnce) {
    for (const bool of_prompt : {false, true}) {
        Bench b;
        SamplingParams p;
        p.temperature = 0.5f;
        Sequence& s = b.wait(4, p);
        pb_sampling_params prompt = wire_params({.temperature = 0}, {});
        b.prompt_logprobs.add(s, prompt);
        FakeSampler& next = b.post<FakeSampler>(b.sampler.slot(), kFakeSampler, "sampler");
        next.accepted = [of_prompt](const pb_sampling_params& asked) {
            if ((asked.temperature == 0) == of_prompt) throw Error(PB_UNSUPPORTED, "not that");
        };
        b.part.at_boundary(false);
        EXPECT_FALSE(b.part.step_may_be_redone());
        ASSERT_THAT(b.states(), ElementsAre(SwapState::kOnProbation, SwapState::kRolledBack));
        EXPECT_EQ(b.report().swaps[1].phase, "accepts");
        EXPECT_EQ(b.plugins[1].name, "fake");
    }
}

TEST(Swaps, ASamplerWithNothingToRefuseStays) {
    Bench b;
    FakeSampler& next = b.post<FakeSampler>(b.sampler.slot(), kFakeSampler, "sampler");
    next.accepted = [](const pb_sampling_params&) { throw Error(PB_UNSUPPORTED, "nothing at all"); };
    b.part.at_boundary(false);
    EXPECT_TRUE(b.part.step_may_be_redone()) << "there is no request";
}

TEST(Swaps, ARefusalIsReportedWithTheNextStepAndChangesNoOne) {
    Bench b;
    const auto refused = b.scheduler.slot().line().refuse(named("scheduler", "absent"), "find", fail("there is none"));
    b.part.at_boundary(false);
    EXPECT_THAT(b.states(), ElementsAre(SwapState::kRefused));
    EXPECT_EQ(b.plugins[0].name, "fake");
    b.part.at_boundary(false);
    EXPECT_EQ(b.report().swaps.size(), 1u) << "once";
}

TEST(Swaps, TheNextInLineWaitsForTheEndOfProbation) {
    Bench b({.probation_steps = 1, .max_call_ms = 0});
    FakeScheduler& first = b.post<FakeScheduler>(b.scheduler.slot(), kFakeScheduler, "scheduler");
    const auto kept = b.pending;
    FakeScheduler& second = b.post<FakeScheduler>(b.scheduler.slot(), kFakeScheduler, "scheduler");
    b.part.at_boundary(false);
    b.part.at_boundary(false);
    EXPECT_EQ(first.resyncs.size(), 1u);
    EXPECT_EQ(second.resyncs.size(), 0u);
    b.part.end_step({true, true});
    b.part.at_boundary(false);
    EXPECT_EQ(second.resyncs.size(), 1u);
}

// The sampler's slot, whose newcomer learns what it has to know in portions, one at each boundary.
class LearnsInPortions final : public SwapPort {
  public:
    explicit LearnsInPortions(SamplerSwaps& port) : port_(port) {}
    host::Slot& slot() override { return port_.slot(); }
    Result<bool> warm_up(const host::Component&) override {
        asked += 1;
        if (asked == fails_at) return fail("it cannot learn that");
        return asked >= portions;
    }
    const char* serves_phase() const override { return "adopt"; }
    void enter() override {}
    bool roll_back(const std::string& phase, const Failure& why) override {
        return port_.roll_back(phase, why);
    }
    bool computes() const override { return in_pass; }
    StepCall call_of(const StepUse& use) override { return port_.call_of(use); }

    int portions = 3, fails_at = 0, asked = 0;
    bool in_pass = false; // part of what computes a step

  private:
    SamplerSwaps& port_;
};

struct TogetherBench : Bench {
    LearnsInPortions learns{sampler_swaps};
    Swaps both{{swap_settings, {&scheduler_swaps, &learns}, journal, context, clock}};
    std::vector<std::shared_ptr<host::Swap>> swaps;

    TogetherBench() {
        Played<FakeScheduler> next_scheduler = play<FakeScheduler>(kFakeScheduler);
        Played<FakeSampler> next_sampler = play<FakeSampler>(kFakeSampler);
        const uint64_t number = both.transactions().next_number();
        host::SwapLine &of_scheduler = scheduler.slot().line(), &of_sampler = sampler.slot().line();
        swaps = {of_scheduler.prepare(std::move(next_scheduler.component), named("scheduler", "next"), number),
                 of_sampler.prepare(std::move(next_sampler.component), named("sampler", "next"), number)};
        both.transactions().post({{&scheduler_swaps, swaps[0]}, {&learns, swaps[1]}}, 0);
    }
};

TEST(SwapsTogether, WaitForTheOneThatLearnsInPortions) {
    TogetherBench b;
    const std::shared_ptr<host::Swap> after = b.scheduler.slot().line().prepare(
        std::move(play<FakeScheduler>(kFakeScheduler).component), named("scheduler", "after"));
    b.scheduler.slot().line().post(after);
    for (int boundary = 1; boundary < 3; ++boundary) {
        b.both.at_boundary(false);
        EXPECT_TRUE(b.both.needs_boundary()) << "whether or not requests run";
        EXPECT_EQ(b.learns.asked, boundary);
        EXPECT_TRUE(b.states().empty()) << "neither has its slot, and the one after them waits";
        EXPECT_FALSE(b.both.waits_for_steps());
        b.both.end_step({true, true});
    }
    b.both.at_boundary(false);
    EXPECT_THAT(b.states(), ElementsAre(SwapState::kOnProbation, SwapState::kOnProbation));
    b.both.at_boundary(false);
    EXPECT_EQ(b.learns.asked, 3) << "it knows all";
    EXPECT_FALSE(b.both.needs_boundary()) << "probation has no end without requests";
    EXPECT_EQ(after->record().state, SwapState::kPosted);
}

TEST(SwapsTogether, AreAllRefusedWhereOneCannotLearn) {
    TogetherBench b;
    b.learns.fails_at = 2;
    b.both.at_boundary(false);
    b.both.at_boundary(false);
    ASSERT_THAT(b.states(), ElementsAre(SwapState::kRefused, SwapState::kRefused));
    EXPECT_EQ(b.report().swaps[0].kind, "sampler");
    EXPECT_EQ(b.report().swaps[0].phase, "adopt");
    EXPECT_EQ(b.report().swaps[1].phase, kTogether);
    EXPECT_EQ(b.report().swaps[1].reason,
              "sampler fake→next was refused in phase adopt: it cannot learn that");
    EXPECT_EQ(b.plugins[0].name, "fake");
    b.post<FakeScheduler>(b.scheduler.slot(), kFakeScheduler, "scheduler");
    b.both.at_boundary(false);
    EXPECT_EQ(b.pending->record().state, SwapState::kOnProbation) << "the slot is free again";
}

TEST(SwapsTogether, LearnBesideStepsInFlightAndEnterWhenTheseAreBack) {
    TogetherBench b;
    b.learns.in_pass = true;
    b.both.at_boundary(true);
    b.both.at_boundary(true);
    EXPECT_FALSE(b.both.waits_for_steps()) << "it has to learn, and steps may go on";
    b.both.at_boundary(true);
    EXPECT_TRUE(b.states().empty());
    EXPECT_TRUE(b.both.waits_for_steps());
    b.both.at_boundary(false);
    EXPECT_EQ(b.learns.asked, 3);
    EXPECT_THAT(b.states(), ElementsAre(SwapState::kOnProbation, SwapState::kOnProbation));
    EXPECT_FALSE(b.both.waits_for_steps());
}

TEST(SwapJournal, KeepsTheRecordOfThoseInTheSlotsTrue) {
    StepContext context;
    std::vector<host::Identity> plugins = {named("model", "llama"), named("sampler", "a"), named("scheduler", "a")};
    SwapJournal journal(context, plugins);
    host::SwapRecord r;
    r.kind = "sampler";
    r.from = named("sampler", "a");
    r.to = named("sampler", "b");
    const std::pair<SwapState, const char*> cases[] = {{SwapState::kRefused, "a"},    {SwapState::kOnProbation, "b"},
                                                       {SwapState::kCommitted, "b"},  {SwapState::kRolledBack, "a"}};
    for (const auto& [state, expected] : cases) {
        r.state = state;
        journal.note(r);
        EXPECT_EQ(plugins[1].name, expected);
    }
    EXPECT_EQ(plugins[0].name, "llama");
    EXPECT_EQ(plugins[2].name, "a");
    EXPECT_EQ(context.report.swaps.size(), 4u);
}

}  // namespace
}  // namespace patchbay::engine::testing::swaps_test
