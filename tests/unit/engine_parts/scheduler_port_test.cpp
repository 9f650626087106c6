// Plans of a scheduler against the contract: what keeps it is taken as it is, and what breaches it is refused whole.
#include "engine/scheduling/scheduler_port.hpp"

#include <gmock/gmock.h>

#include <random>
#include <set>

#include "engine/scheduling/scheduler_view.hpp"
#include "unit/engine_parts/neighbours.hpp"
#include "unit/host/slot_steps.hpp"

namespace patchbay::engine::testing {
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
    Sequence &runs = b.run(8, 4), &other = b.run(8, 4), &waits = b.wait(40), &second = b.wait(4);
    Sequence& pending = b.sequences.add(sequence(99, 4));
    EXPECT_EQ(b.refused({{777, 1}}), "plans 777, which it was not shown");
    EXPECT_EQ(b.refused({{pending.id, 1}}), "plans 99, which it was not shown");
    EXPECT_EQ(b.refused({{runs.id, 0}}), "plans no tokens for 1");
    EXPECT_EQ(b.refused({{runs.id, 1}, {other.id, 1}, {runs.id, 1}}), "names 1 twice");
    EXPECT_EQ(b.refused({{runs.id, 1}}, {runs.id}), "names 1 twice");
    EXPECT_EQ(b.refused({}, {other.id, other.id}), "names 2 twice");
    EXPECT_EQ(b.refused({}, {waits.id}), "preempts 3, which is not running");
    EXPECT_EQ(b.refused({}, {777}), "preempts 777, which is not running");
    EXPECT_EQ(b.refused({{runs.id, 4}, {waits.id, 61}}),
              "plans 65 tokens, more than max_num_batched_tokens of 64");
    EXPECT_EQ(b.refused({{waits.id, 1}, {second.id, 1}}), "has 4 sequences running, more than max_num_seqs of 3");
    EXPECT_EQ(b.refused({{1, 1}, {2, 1}, {3, 1}, {4, 1}}), "wrote past its buffers");
    EXPECT_EQ(b.refused({}, {1, 2, 1}), "wrote past its buffers");
    EXPECT_EQ(b.refused({{runs.id, 4}, {waits.id, 60}}), "") << "just what there is";
    EXPECT_EQ(b.refused({{waits.id, 1}, {second.id, 1}}, {runs.id}), "") << "a preemption makes a seat";
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

// Plans of few ids, so that breaches are common, against the contract word for word.
TEST(SchedulerPort, AgreesWithTheContractOverRandomPlans) {
    std::mt19937 draw(11);
    World w;
    w.settings.max_num_seqs = 4;
    w.settings.max_num_batched_tokens = 20;
    Bench b(std::move(w));
    for (int i = 0; i < 3; ++i) b.run(8, 4);
    for (int i = 0; i < 3; ++i) b.wait(8);
    b.sequences.add(sequence(7, 4)); // still to arrive
    size_t good = 0, bad = 0;
    for (int trial = 0; trial < 5000; ++trial) {
        Items items;
        std::vector<uint64_t> preempted;
        for (uint32_t i = draw() % 4; i > 0; --i)
            items.emplace_back(1 + draw() % (draw() % 4 ? 6 : 8), draw() % 12 ? 1 + draw() % 9 : 0);
        for (uint32_t i = draw() % 3; i > 0; --i) preempted.push_back(1 + draw() % (draw() % 4 ? 3 : 8));
        std::set<uint64_t> named;
        bool keeps = true;
        uint64_t tokens = 0;
        int running = 3;
        for (const uint64_t id : preempted) {
            keeps = keeps && id <= 3 && named.insert(id).second;
            running -= 1;
        }
        for (const auto& [id, n] : items) {
            keeps = keeps && id <= 6 && n > 0 && named.insert(id).second;
            tokens += n;
            running += id > 3;
        }
        keeps = keeps && tokens <= 20 && running <= 4;
        b.policy.plan = Bench::gives(items, preempted);
        b.context.report = {};
        ASSERT_TRUE(b.scheduler.plan() || !keeps) << trial;
        ASSERT_EQ(b.context.report.calls.plan_faults == 0, keeps) << trial;
        if (keeps) {
            ASSERT_EQ(b.scheduler.latest().items.size(), items.size());
            ASSERT_EQ(b.scheduler.latest().preemptions.size(), preempted.size());
        } else {
            ASSERT_TRUE(b.scheduler.latest().items.empty() && b.scheduler.latest().preemptions.empty());
        }
        good += keeps;
        bad += !keeps;
    }
    EXPECT_GT(good, 500u);
    EXPECT_GT(bad, 500u);
}

}  // namespace
}  // namespace patchbay::engine::testing
