// The scheduler of a running engine is exchanged: texts stay, state crosses, what fails leaves no trace but a record.
#include "engine/swap/swap_control.hpp"
#include "host/slot.hpp"
#include "swap/swap_fixture.hpp"

namespace patchbay::engine::scheduler_swap_test {
namespace {

using namespace testing;
using host::SwapState;

constexpr SwapSlot kScheduler = SwapSlot::kScheduler;

TEST(SchedulerSwap, AtEveryBoundaryLeavesEveryTextAsItIs) {
    config::EngineConfig c = busy_engine();
    c.swap.probation_steps = 1;
    Swapping s(c);
    s.add_requests();
    const std::vector<std::pair<const host::Registry*, const char*>> others = {
        {&other_builds(), "fcfs"}, {&swap_registry(), "sjf"},      {&other_builds(), "static"},
        {&swap_registry(), "fcfs"}, {&swap_registry(), "priority"}, {&other_builds(), "sjf"}};
    size_t n = 0;
    EXPECT_EQ(s.run([&] {
        const auto& [registry, name] = others[n++ % others.size()];
        s.swap(kScheduler, {name, {}}, *registry);
    }),
              undisturbed());
    uint64_t exchanged = 0;
    for (const host::SwapRecord& r : records(s.steps)) {
        EXPECT_TRUE(r.state == SwapState::kOnProbation || r.state == SwapState::kCommitted) << r.text();
        exchanged += r.state == SwapState::kOnProbation;
        EXPECT_TRUE(r.from.name != r.to.name || r.from.sha256 != r.to.sha256) << r.text();
    }
    EXPECT_EQ(exchanged, s.steps.size()); // one before every step
    EXPECT_GT(exchanged, 20u);
}

TEST(SchedulerSwap, TheOneThatComesInPlansTheVeryNextStep) {
    Swapping s(busy_engine());
    s.add_requests();
    s.step();
    const auto swap = s.swap(kScheduler, {"counting_1", {}});
    EXPECT_EQ(swap->record().state, SwapState::kPosted);
    EXPECT_EQ(s.gauges.at("counting_1/plans"), 0);
    s.step();
    EXPECT_EQ(s.gauges.at("counting_1/plans"), 1);
    EXPECT_EQ(swap->record().state, SwapState::kOnProbation);
    EXPECT_EQ(swap->record().step, 2u);
    EXPECT_GT(swap->record().pause_ns, 0u);
    EXPECT_EQ(name_in(*s.engine, "scheduler"), "counting_1");
}

TEST(SchedulerSwap, OneThatKeepsItsOwnQueueIsGivenThoseThatWait) {
    Swapping s(busy_engine());
    s.add_requests();
    for (int i = 0; i < 3; ++i) s.step(); // some run, some wait
    s.swap(kScheduler, {"counting_1", {}});
    EXPECT_EQ(s.run(), undisturbed()); // else those who waited would wait for ever
}

TEST(SchedulerSwap, IsCommittedAfterItsStepsOfProbation) {
    config::EngineConfig c = busy_engine();
    c.swap.probation_steps = 3;
    Swapping s(c);
    s.add_requests();
    const auto swap = s.swap(kScheduler, {"sjf", {}});
    for (int i = 0; i < 2; ++i) {
        s.step();
        EXPECT_EQ(swap->record().state, SwapState::kOnProbation) << i;
    }
    s.step();
    EXPECT_EQ(swap->record().state, SwapState::kCommitted);
    EXPECT_EQ(swap->record().text(), "swap scheduler fcfs→sjf: committed");
    EXPECT_EQ(swap->record().end_step, 3u);
}

TEST(SchedulerSwap, CarriesStateToAnotherBuildAndVersion) {
    Swapping s(busy_engine("counting_1"));
    s.add_requests();
    for (int i = 0; i < 4; ++i) s.step();
    s.swap(kScheduler, {"counting_2", {}}); // has a field more
    s.step();
    EXPECT_EQ(s.gauges.at("counting_2/plans"), 5);
    EXPECT_EQ(s.gauges.at("counting_2/moves"), 1);
    for (int i = 0; i < 16; ++i) s.step();
    s.swap(kScheduler, {"counting_1", {}}); // has a field less
    s.step();
    EXPECT_EQ(s.gauges.at("counting_1/plans"), 22);
    EXPECT_EQ(s.run(), undisturbed());
}

TEST(SchedulerSwap, BetweenUnlikePoliciesStartsWithEmptyState) {
    Swapping s(busy_engine("counting_1"));
    s.add_requests();
    s.step();
    s.swap(kScheduler, {"static", {}}); // has state, of another kind
    EXPECT_EQ(s.run(), undisturbed());
    EXPECT_EQ(records(s.steps).at(0).state, SwapState::kOnProbation);
}

struct Refusal {
    const char* from;
    config::PluginChoice to;
    const char* text; // what the record says, or begins with

    friend std::ostream& operator<<(std::ostream& out, const Refusal& r) { return out << r.text; }
};

class SchedulerRefusal : public ::testing::TestWithParam<Refusal> {};

TEST_P(SchedulerRefusal, NamesItsPhaseAndLeavesTheOldOneAsItWas) {
    const auto run = [](bool asks) {
        Swapping s(busy_engine(GetParam().from));
        s.add_requests();
        for (int i = 0; i < 3; ++i) s.step();
        if (asks) {
            const auto swap = s.swap(kScheduler, GetParam().to);
            s.step();
            EXPECT_EQ(swap->record().state, SwapState::kRefused);
            const std::string said = swap->record().text();
            EXPECT_EQ(said.substr(0, std::string(GetParam().text).size()), GetParam().text);
            const auto all = records(s.steps);
            EXPECT_EQ(all.size(), 1u);
            EXPECT_EQ(all.at(0).text(), said);
            EXPECT_EQ(name_in(*s.engine, "scheduler"), GetParam().from);
            EXPECT_EQ(swap->record().step, 0u);
        }
        s.run();
        const std::string name = GetParam().from;
        return std::tuple(s.texts, s.steps.size(), s.gauges.at(name + "/plans"), s.gauges.at(name + "/moves"));
    };
    EXPECT_EQ(run(true), run(false));
}

const Refusal kRefusals[] = {
    {"fcfs", {"sjff", {}},
     "swap scheduler fcfs→sjff: refused in phase find: no scheduler 'sjff' (did you mean 'sjf'?)"},
    {"fcfs", {"sjf", {{"agein", "2"}}},
     "swap scheduler fcfs→sjf: refused in phase create: unknown key 'agein' of scheduler 'sjf' (did you mean "
     "'ageing'?)"},
    {"fcfs", {"faulty", {{"fault", "over_budget"}}},
     "swap scheduler fcfs→faulty: refused in phase probe: scheduler.budget"},
    {"counting_1", {"counting_3", {}},
     "swap scheduler counting_1→counting_3: refused in phase load: cannot read state 'counting/1'"},
    {"counting_4", {"counting_1", {}},
     "swap scheduler counting_4→counting_1: refused in phase save: more than 1048576 bytes of state"},
    {"counting_5", {"counting_1", {}},
     "swap scheduler counting_5→counting_1: refused in phase save: has lost its notes"},
};
INSTANTIATE_TEST_SUITE_P(SchedulerSwap, SchedulerRefusal, ::testing::ValuesIn(kRefusals));

class SchedulerFault : public ::testing::TestWithParam<const char*> {};

TEST_P(SchedulerFault, InAnyStepOfProbationIsRedoneByThePredecessorAndRolledBackOnce) {
    for (int at = 1; at <= 4; ++at) {
        config::EngineConfig c = busy_engine("counting_1");
        c.swap.probation_steps = 4;
        Swapping s(c);
        s.add_requests();
        for (int i = 0; i < 3; ++i) s.step();
        const config::PluginChoice faulty{
            "faulty", {{"fault", GetParam()}, {"at", std::to_string(at)}, {"blocks", std::to_string(kBlocks)}}};
        const auto swap = s.swap(kScheduler, faulty);
        for (int i = 0; i < at; ++i) {
            EXPECT_EQ(name_in(*s.engine, "scheduler"), i == 0 ? "counting_1" : "faulty");
            EXPECT_GT(s.step().work.scheduled_seqs, 0u) << "the step was lost";
        }
        EXPECT_EQ(name_in(*s.engine, "scheduler"), "counting_1");
        EXPECT_EQ(s.gauges.at("counting_1/plans"), 4) << at; // the step that failed is its fourth
        EXPECT_EQ(s.run(), undisturbed()) << at;
        const auto all = records(s.steps);
        ASSERT_EQ(all.size(), 2u) << at;
        EXPECT_EQ(all[0].state, SwapState::kOnProbation);
        EXPECT_EQ(all[1].state, SwapState::kRolledBack);
        EXPECT_FALSE(all[1].after_calls) << "its predecessor planned the step";
        EXPECT_EQ(all[1].end_step, static_cast<uint64_t>(3 + at));
        EXPECT_TRUE(all[1].text().starts_with("swap scheduler counting_1→faulty: rolled back in phase plan: "))
            << all[1].text();
        for (const StepReport& r : s.steps) EXPECT_EQ(r.calls.plan_faults, 0u); // no plan was lost
    }
}
INSTANTIATE_TEST_SUITE_P(SchedulerSwap, SchedulerFault,
                         ::testing::Values("throws", "unknown_id", "over_budget", "twice"));

TEST(SchedulerSwap, OneThatIsSlowIsRightInThisStepAndGoneBeforeTheNext) {
    config::EngineConfig c = busy_engine("counting_1");
    c.swap = {.probation_steps = 8, .max_call_ms = 1};
    TickingClock clock(50'000);
    Swapping s(c, &clock);
    s.add_requests();
    s.step();
    s.swap(kScheduler, {"faulty", {{"fault", "slow"}, {"at", "2"}, {"blocks", std::to_string(kBlocks)}}});
    s.step();
    EXPECT_EQ(name_in(*s.engine, "scheduler"), "faulty");
    s.step();
    EXPECT_EQ(s.gauges.at("counting_1/plans"), 1); // the slow one's plan was good
    s.step();
    EXPECT_EQ(s.gauges.at("counting_1/plans"), 2);
    EXPECT_EQ(s.run(), undisturbed());
    const auto all = records(s.steps);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_TRUE(all[1].after_calls) << "its plan counted";
    EXPECT_EQ(all[1].text(),
              "swap scheduler counting_1→faulty: rolled back in phase time: plan took 5 ms, more than max_call_ms of "
              "1");
}

TEST(SchedulerSwap, OneMaySayHowLongItsCallsMayTake) {
    config::EngineConfig c = busy_engine("counting_1");
    c.swap = {.probation_steps = 4, .max_call_ms = 1};
    const std::pair<const char*, const char*> cases[] = {
        {"4", "rolled back in phase time: plan took 5 ms, more than its own max_call_ms of 4"}, {"6", "committed"}};
    for (const auto& [own, end] : cases) {
        TickingClock clock(50'000);
        Swapping s(c, &clock);
        s.add_requests();
        s.step();
        const auto swap = s.swap(kScheduler, {"faulty", {{"fault", "slow"}, {"max_call_ms", own}}});
        EXPECT_EQ(s.run(), undisturbed());
        EXPECT_NE(swap->record().text().find(end), std::string::npos) << swap->record().text();
    }
}

TEST(SchedulerSwap, OneThatSchedulesNothingIsReplacedInsteadOfFailingTheEngine) {
    Swapping s(busy_engine());
    s.add_requests();
    s.step();
    const auto swap =
        s.swap(kScheduler, {"faulty", {{"fault", "idle"}, {"at", "2"}, {"blocks", std::to_string(kBlocks)}}});
    EXPECT_EQ(s.run(), undisturbed());
    EXPECT_EQ(swap->record().text(),
              "swap scheduler fcfs→faulty: rolled back in phase plan: ran nothing for 1000 steps in a row");
}

TEST(SchedulerSwap, AfterProbationAFaultIsCountedAsEver) {
    config::EngineConfig c = busy_engine();
    c.swap.probation_steps = 2;
    Swapping s(c);
    s.add_requests();
    const auto swap = s.swap(
        kScheduler, {"faulty", {{"fault", "throws"}, {"at", "3"}, {"blocks", std::to_string(kBlocks)}}});
    for (int i = 0; i < 3; ++i) s.step();
    EXPECT_EQ(swap->record().state, SwapState::kCommitted);
    EXPECT_EQ(s.steps.back().calls.plan_faults, 1u);
    EXPECT_EQ(name_in(*s.engine, "scheduler"), "faulty");
}

TEST(SchedulerSwap, SwapsGetInLineAndEachWaitsForTheOneBefore) {
    config::EngineConfig c = busy_engine();
    c.swap.probation_steps = 2;
    Swapping s(c);
    s.add_requests();
    const auto first = s.swap(kScheduler, {"sjf", {}}), second = s.swap(kScheduler, {"static", {}});
    s.step();
    EXPECT_EQ(first->record().state, SwapState::kOnProbation);
    EXPECT_EQ(second->record().state, SwapState::kPosted);
    s.step();
    EXPECT_EQ(first->record().state, SwapState::kCommitted);
    s.step();
    EXPECT_EQ(second->record().state, SwapState::kOnProbation);
    EXPECT_EQ(second->record().text(), "swap scheduler sjf→static: on probation");
    EXPECT_EQ(s.run(), undisturbed());
}

TEST(SchedulerSwap, BeyondTheLengthOfTheLineIsRefused) {
    Swapping s(busy_engine());
    for (size_t i = 0; i < host::SwapLine::kMaxPendingSwaps; ++i)
        EXPECT_EQ(s.swap(kScheduler, {"sjf", {}})->record().state, SwapState::kPosted);
    EXPECT_EQ(s.swap(kScheduler, {"sjf", {}})->record().text(),
              "swap scheduler fcfs→sjf: refused in phase post: 64 swaps are in line already");
}

TEST(SchedulerSwap, WaitsForItsTime) {
    Swapping s(busy_engine());
    s.add_requests();
    const auto swap = s.engine->control().swaps().prepare({kScheduler, {"sjf", {}}, swap_registry(), prober()});
    EXPECT_EQ(swap->record().state, SwapState::kReady);
    s.step();
    const uint64_t when = s.clock.now_ns() + 1'000'000;
    s.engine->control().swaps().post(swap, when);
    while (s.clock.now_ns() < when) {
        s.step();
        EXPECT_TRUE(swap->record().state == SwapState::kPosted || swap->record().time_ns >= when);
    }
    s.step();
    EXPECT_GE(swap->record().time_ns, when);
}

TEST(SchedulerSwap, OfAnotherEngineIsTurnedAway) {
    Swapping one(busy_engine()), other(busy_engine());
    const auto swap = one.engine->control().swaps().prepare({kScheduler, {"sjf", {}}, swap_registry(), prober()});
    other.engine->control().swaps().post(swap);
    EXPECT_EQ(swap->record().text(),
              "swap scheduler fcfs→sjf: refused in phase post: it was prepared for another engine");
}

TEST(SchedulerSwap, ThatNoStepEverReachedIsReportedAtTheEndOfItsEngine) {
    auto s = std::make_unique<Swapping>(busy_engine());
    const auto posted = s->swap(kScheduler, {"sjf", {}});
    const auto ready =
        s->engine->control().swaps().prepare({SwapSlot::kSampler, {"greedy", {}}, swap_registry(), prober()});
    s.reset();
    EXPECT_EQ(posted->wait().text(), "swap scheduler fcfs→sjf: refused in phase post: its engine ended first");
    EXPECT_EQ(ready->wait().text(), "swap sampler standard→greedy: refused in phase post: its engine ended first");
}

}  // namespace
}  // namespace patchbay::engine::scheduler_swap_test
