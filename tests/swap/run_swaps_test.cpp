// What an experiment makes of the swaps of a run: when they are posted, and which of their outcomes are faults.
#include "experiment/timed_swaps.hpp"
#include "paths.hpp"
#include "swap/swap_fixture.hpp"

namespace patchbay::experiment::run_swaps_test {
namespace {

using namespace engine::testing;
using engine::SwapSlot;
using host::SwapState;

SwapTask task(const std::string& kind, std::optional<uint32_t> request, uint64_t t_ns, config::PluginChoice choice) {
    SwapTask out;
    out.timed.kind = kind;
    out.timed.request = request;
    out.timed.t_ns = t_ns;
    out.choice = std::move(choice);
    return out;
}

// Runs the fixture's requests, of which the experiment believes that one came every millisecond.
RunRecord run_with(Swapping& s, const std::vector<SwapTask>& tasks) {
    s.add_requests();
    std::vector<PlannedRequest> planned(8);
    for (size_t i = 0; i < planned.size(); ++i) planned[i].arrival_ns = i * 1'000'000;
    auto swaps = RunSwaps::prepare(*s.engine, tasks, swap_registry(), prober());
    if (!swaps) throw std::runtime_error(swaps.error());
    swaps->post(s.clock.now_ns(), experiment::GivenRequests(planned));
    s.run();
    RunRecord run;
    swaps->write(run);
    return run;
}

TEST(RunSwaps, TakePlaceInTheOrderOfTheirTimes) {
    config::EngineConfig c = busy_engine();
    c.swap.probation_steps = 1;
    TickingClock clock(10'000); // some 15 ms for all of it
    Swapping s(c, &clock);
    const RunRecord run =
        run_with(s, {task("scheduler", std::nullopt, 2'500'000, {"sjf", {}}), task("scheduler", 2, 0, {"static", {}}),
                     task("sampler", 0, 0, {"standard", {}})});
    EXPECT_EQ(s.texts, undisturbed());
    EXPECT_TRUE(run.faults.empty());
    ASSERT_EQ(run.swaps.size(), 3u); // as the file has them
    EXPECT_EQ(run.swaps[0].record.text(), "swap scheduler static→sjf: committed");
    EXPECT_GE(run.swaps[0].record.time_ns, 2'500'000u);
    EXPECT_EQ(run.swaps[0].task, "scheduler sjf after 0.0025 s");
    EXPECT_EQ(run.swaps[1].record.text(), "swap scheduler fcfs→static: committed");
    EXPECT_GE(run.swaps[1].record.time_ns, 1'000'000u); // when the second came
    EXPECT_LT(run.swaps[1].record.time_ns, 2'500'000u);
    EXPECT_EQ(run.swaps[1].task, "scheduler static once 2 requests have arrived");
    EXPECT_EQ(run.swaps[2].record.step, 1u);
}

TEST(RunSwaps, OneThatIsRolledBackMakesTheRunInvalid) {
    Swapping s(busy_engine());
    const RunRecord run = run_with(
        s, {task("scheduler", 0, 0, {"faulty", {{"fault", "throws"}, {"blocks", std::to_string(kBlocks)}}})});
    EXPECT_EQ(run.faults,
              std::vector<std::string>{"swap scheduler fcfs→faulty: rolled back in phase plan: fails on purpose"});
    EXPECT_FALSE(run.valid());
}

TEST(RunSwaps, OneThatIsNeverReachedMakesTheRunInvalidAndProbationDoesNot) {
    config::EngineConfig c = busy_engine();
    c.swap.probation_steps = 1'000'000;
    Swapping s(c);
    const RunRecord run = run_with(
        s, {task("scheduler", 0, 0, {"sjf", {}}), task("sampler", std::nullopt, 1'000'000'000'000, {"greedy", {}})});
    EXPECT_EQ(run.faults,
              std::vector<std::string>{"swap sampler standard→greedy: posted, but the run ended first"});
    EXPECT_EQ(run.swaps[0].record.state, SwapState::kOnProbation);
}

TEST(RunSwaps, OfOneItemSucceedOrFailTogether) {
    Swapping s(busy_engine("fcfs", "greedy"));
    SwapTask sampler = task("sampler", 0, 0, {"faulty", {{"fault", "throws"}, {"vocab", std::to_string(kVocab)}}});
    sampler.timed.with_previous = true;
    const RunRecord run = run_with(s, {task("scheduler", 0, 0, {"sjf", {}}), sampler});
    ASSERT_EQ(run.swaps.size(), 2u);
    EXPECT_EQ(run.swaps[1].record.text(), "swap sampler greedy→faulty: rolled back in phase sample: fails on purpose");
    EXPECT_EQ(run.swaps[0].record.text(),
              "swap scheduler fcfs→sjf: rolled back in phase together: sampler greedy→faulty was rolled back in phase "
              "sample: fails on purpose");
    EXPECT_EQ(run.swaps[0].record.transaction, run.swaps[1].record.transaction);
    EXPECT_EQ(s.texts, greedy_undisturbed());
    EXPECT_EQ(run.faults.size(), 2u);
}

TEST(RunSwaps, TakeAModelFromItsFolder) {
    config::Faults faults;
    const auto timed = read_timed_swaps(
        *config::parse_yaml("{t: 0, swap: {model: models/demo-target, scheduler: sjf}}", "e.yaml"), faults);
    const auto tasks = swap_tasks(timed, swap_registry(), faults);
    EXPECT_FALSE(faults.any()) << faults.failure().text;
    ASSERT_EQ(tasks.size(), 2u);
    EXPECT_EQ(tasks[0].text(), "model models/demo-target after 0 s");
    EXPECT_FALSE(tasks[0].timed.with_previous);
    EXPECT_TRUE(tasks[1].timed.with_previous);
    config::EngineConfig c = busy_engine();
    c.model = {};
    c.model.path = std::string(kSourceDir) + "/models/demo-target";
    c.swap.probation_steps = 2;
    Swapping s(c);
    const RunRecord run = run_with(s, {task("model", 0, 0, {c.model.path, {}})});
    EXPECT_TRUE(run.faults.empty()) << run.faults[0];
    EXPECT_EQ(run.swaps.at(0).record.state, SwapState::kCommitted) << run.swaps.at(0).record.text();
}

TEST(RunSwaps, WhatIsRefusedBeforeTheRunIsAFailureWithItsPlace) {
    Swapping s(busy_engine());
    SwapTask wrong = task("scheduler", 0, 0, {"faulty", {{"fault", "over_budget"}}});
    wrong.timed.origin = config::Origin::flag("--at");
    const auto prepared = RunSwaps::prepare(*s.engine, {wrong}, swap_registry(), prober());
    ASSERT_FALSE(prepared);
    EXPECT_TRUE(prepared.error().starts_with(
        "command line --at: swap scheduler fcfs→faulty: refused in phase probe: scheduler.budget: "))
        << prepared.error();
}

}  // namespace
}  // namespace patchbay::experiment::run_swaps_test
