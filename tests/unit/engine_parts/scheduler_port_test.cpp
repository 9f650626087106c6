// The scheduler's plans: one that keeps the contract is taken as it is, and one that breaches it is refused whole.
#include "engine/scheduling/scheduler_port.hpp"

#include <gmock/gmock.h>

#include "engine/scheduling/scheduler_view.hpp"
#include "unit/engine_parts/neighbours.hpp"
#include "unit/host/slot_steps.hpp"

namespace patchbay::engine::testing::scheduler_port_test {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Items = std::vector<std::pair<uint64_t, uint32_t>>; // ids, tokens

struct Bench : QueueNeighbours {
    explicit Bench(World w = {}) : QueueNeighbours(std::move(w)) { scheduler.connect(view); }

    static auto gives(Items items, std::vector<uint64_t> preempted = {}) {
        return [items = std::move(items), preempted = std::move(preempted)](const pb_scheduler_in&,
                                                                            pb_scheduler_out& out) {
            for (size_t i = 0; i < items.size() && i < out.item_capacity; ++i)
                out.items[i] = {items[i].first, items[i].second, 0};
            for (size_t i = 0; i < preempted.size() && i < out.preempt_capacity; ++i)
                out.preempts[i] = {preempted[i], PB_PREEMPT_SWAP, 0};
            out.item_count = static_cast<uint32_t>(items.size());
            out.preempt_count = static_cast<uint32_t>(preempted.size());
        };
    }
    std::string refused(Items items, std::vector<uint64_t> preempted = {}) { // with what text
        Played<FakeScheduler> next = play<FakeScheduler>(kFakeScheduler); // on probation: its fault has a record
        next.policy.plan = gives(std::move(items), std::move(preempted));
        const auto swap = host::testing::put_on_probation(scheduler.slot(), std::move(next.component), "scheduler",
                                                          "fake", context.step);
        if (!scheduler.plan()) return "the engine ends";
        if (!scheduler.slot().previous()) return swap->record().reason;
        scheduler.roll_back("test", fail(""));
        return "";
    }

    PressureMonitor pressure;
    SchedulerView view{settings, sequences, kv, hints, beams.room(), pressure};
};

TEST(SchedulerPort, TakesAPlanAsItIs) {
    Bench b;
    Sequence &runs = b.run(8, 4), &other = b.run(4, 4), &waits = b.wait(6);
    b.policy.plan = Bench::gives({{waits.id, 6}, {runs.id, 2}}, {other.id});
    ASSERT_TRUE(b.scheduler.plan());
    const StepPlan& plan = b.scheduler.latest();
    ASSERT_EQ(plan.items.size(), 2u);
    EXPECT_EQ(plan.items[0].sequence, &waits);
    EXPECT_EQ(plan.items[0].tokens, 6u);
    EXPECT_EQ(plan.items[1].sequence, &runs);
    ASSERT_EQ(plan.preemptions.size(), 1u);
    EXPECT_EQ(plan.preemptions[0].sequence, &other);
    EXPECT_EQ(plan.preemptions[0].how, PB_PREEMPT_SWAP);
    EXPECT_EQ(b.report().calls.plan_faults, 0u);
}

TEST(SchedulerPort, RefusesWhatBreachesTheContractAndSaysWhy) {
    World w;
    w.settings.max_num_seqs = 3;
    Bench b(std::move(w));
    Sequence &runs = b.run(8, 4), &waits = b.wait(40);
    b.run(8, 4);
    EXPECT_EQ(b.refused({{runs.id, 0}}), "plans no tokens for 1");
    EXPECT_EQ(b.refused({}, {777}), "preempts 777, which is not running");
    EXPECT_EQ(b.refused({{1, 1}, {2, 1}, {3, 1}, {4, 1}}), "wrote past its buffers");
    EXPECT_EQ(b.refused({}, {1, 2, 1}), "wrote past its buffers");
    EXPECT_EQ(b.refused({{runs.id, 4}, {waits.id, 60}}), "");
}

TEST(SchedulerPort, ABadPlanIsEmptyAndSeveralInARowAreAFailure) {
    Bench b;
    Sequence& s = b.run(8, 4);
    b.policy.plan = Bench::gives({{s.id, 2}, {777, 1}});
    for (int i = 0; i < 7; ++i) {
        ASSERT_TRUE(b.scheduler.plan()) << i;
        EXPECT_THAT(b.scheduler.latest().items, IsEmpty());
    }
    EXPECT_EQ(b.report().calls.plan_faults, 7u);
    EXPECT_EQ(b.report().calls.plan_breaches, 7u);
    b.policy.plan = Bench::gives({{s.id, 2}});
    ASSERT_TRUE(b.scheduler.plan());
    EXPECT_EQ(b.scheduler.latest().items.size(), 1u);
    b.policy.plan = [](const pb_scheduler_in&, pb_scheduler_out&) { throw Error(PB_FAILED, "lost"); };
    for (int i = 0; i < 7; ++i) ASSERT_TRUE(b.scheduler.plan()) << i << " after a good one";
    const auto failed = b.scheduler.plan();
    ASSERT_FALSE(failed);
    EXPECT_EQ(b.report().calls.plan_faults, 15u);
    EXPECT_EQ(b.report().calls.plan_breaches, 7u) << "the others gave no plan";
    EXPECT_EQ(failed.error(), "scheduler 'fake': plan: lost (8 bad plans in a row)");
}

TEST(SchedulerPort, APlanThatFailsOnProbationIsMadeByThePredecessorWhichIsBroughtUpToDate) {
    Bench b;
    Sequence& s = b.run(8, 4);
    b.policy.plan = Bench::gives({{s.id, 3}});
    EXPECT_EQ(b.refused({{777, 1}}), "plans 777, which it was not shown");
    EXPECT_THAT(b.scheduler.latest().items, ElementsAre(Field(&StepPlan::Item::tokens, 3u)));
    EXPECT_EQ(b.report().calls.plan_faults, 0u) << "no step was lost";
    EXPECT_THAT(b.policy.resyncs, ElementsAre(Pair(1, 0)));
    EXPECT_EQ(b.report().swaps.size(), 1u);
    EXPECT_FALSE(b.scheduler.roll_back("plan", fail(""))) << "it is on probation no more";
}

TEST(SchedulerPort, MeasuresPlansAndSaysWhatTimeItIs) {
    Bench b;
    b.clock.advance_ns(5'000'000);
    uint64_t seen = 0;
    b.policy.plan = [&](const pb_scheduler_in& in, pb_scheduler_out&) {
        seen = in.now_us;
        b.clock.advance_ns(70);
    };
    ASSERT_TRUE(b.scheduler.plan());
    ASSERT_TRUE(b.scheduler.plan());
    EXPECT_EQ(seen, 5000u);
    EXPECT_EQ(b.report().calls.plan_ns, 140u);
}

TEST(SchedulerPort, TheEndOfASequenceIsSaidWithItsReasonAndLength) {
    Bench b;
    Sequence& s = b.run(4, 4);
    s.tokens.insert(s.tokens.end(), {7, 8, 9});
    s.drafts = 1;
    const std::pair<FinishReason, pb_finish_reason> kReasons[] = {
        {FinishReason::kStop, PB_FINISH_STOP},   {FinishReason::kRepetition, PB_FINISH_STOP},
        {FinishReason::kLength, PB_FINISH_LENGTH}, {FinishReason::kAbort, PB_FINISH_ABORT},
        {FinishReason::kError, PB_FINISH_ERROR}};
    for (const auto& [its, expected] : kReasons) {
        s.output.delta.finish = its;
        b.scheduler.finished(s);
        const pb_finished& said = b.policy.finished.back();
        EXPECT_EQ(said.struct_size, sizeof said);
        EXPECT_EQ(said.id, s.id);
        EXPECT_EQ(said.output_tokens, 2u);
        EXPECT_EQ(said.reason, expected) << name_of(its);
    }
}

}  // namespace
}  // namespace patchbay::engine::testing::scheduler_port_test
