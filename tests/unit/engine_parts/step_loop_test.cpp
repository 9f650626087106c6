// The loop over policies, a slot and an executor that a test plays: what may be in flight while the next step is
// planned, and why not; and what becomes of the requests when a step fails.
#include "engine/loop/step_loop.hpp"

#include <gmock/gmock.h>

#include <map>

#include "engine/loop/page_copies.hpp"
#include "engine/loop/step_observer.hpp"
#include "engine/placement/placed.hpp"
#include "engine/speculation/proposals.hpp"
#include "engine/swap/swaps.hpp"
#include "unit/engine_parts/step_neighbours.hpp"

namespace patchbay::engine::testing::step_loop_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Bench : StepNeighbours {
    explicit Bench(std::string_view sync_reason = "", World w = {})
        : StepNeighbours(std::move(w)),
          part({clock, context, sequences, kv, admission, scheduler, placement, branches, passes, copies, proposals,
                beams, pooling, lifecycle, swaps, summary},
               sync_reason) {
        plugins = {named("scheduler", "fake"), named("sampler", "fake"), named("attention", "fake")};
        context.step = 0;
        executor.overlaps = sync_reason.empty();
        policy.plan = [this](const pb_scheduler_in& in, pb_scheduler_out& out) {
            in_flight_at_plans.push_back(passes.in_flight());
            plan_all(in, out);
        };
    }
    Sequence& arrive(uint32_t prompt_tokens, uint32_t max_tokens, SamplingParams p = {}) {
        p.max_tokens = max_tokens;
        Sequence& s = wait(prompt_tokens, std::move(p));
        request_of(s).on_output = [this](const RequestOutput& delta) {
            auto& tokens = outputs_of[delta.id];
            tokens.insert(tokens.end(), delta.tokens.begin(), delta.tokens.end());
            if (delta.finish != FinishReason::kNone) ends[delta.id] = {delta.finish, delta.stop_reason};
        };
        return s;
    }
    StepReport step() {
        clock.advance_ns(1000);
        in_flight_at_plans.clear();
        auto done = part.step();
        if (!done) throw std::runtime_error(done.error());
        return *done;
    }
    void run_all() {
        for (int i = 0; part.has_unfinished(); ++i) {
            ASSERT_LT(i, 100);
            step();
        }
    }
    void expect_no_page_in_use() {
        EXPECT_EQ(kv.pool().used(), 0u);
        EXPECT_EQ(passes.in_flight(), 0u);
    }

    std::vector<size_t> in_flight_at_plans; // of the latest step
    std::map<RequestId, std::vector<TokenId>> outputs_of;
    std::map<RequestId, std::pair<FinishReason, std::string>> ends;

    config::SwapSettings swap_settings{.probation_steps = 1, .max_call_ms = 0};
    FakeSwapPort computing{clock, context, journal}, other{clock, context, journal};
    Swaps swaps{{swap_settings, {&computing, &other}, journal, context, clock}};
    PageCopies copies{batches, executor, kv};
    Played<FakeProposer> played = play<FakeProposer>(kFakeProposer);
    FakeProposer& proposer = played.policy;
    const pb_proposer* const proposer_table = static_cast<const pb_proposer*>(played.component->type().vtable);
    Proposals proposals{{settings, speculation, kVocab, kMaxModelLen, sequences, kv, beams, constraints, verification,
                         drafts, draft_kv, aborts, copies, clock, context, journal},
                        {std::move(played.component), proposer_table}, nullptr};
    StepLoop part;
};

// A token is its position in the sequence.
TEST(StepLoop, InTurnAStepIsBackBeforeTheNextOneIsPlanned) {
    Bench b("off");
    Sequence &first = b.arrive(4, 3), &second = b.arrive(6, 2);
    const RequestId ids[] = {first.id, second.id};
    while (b.part.has_unfinished()) {
        const StepReport r = b.step();
        EXPECT_EQ(r.sync_reason, "off");
        EXPECT_THAT(b.in_flight_at_plans, ElementsAre(0));
        EXPECT_EQ(b.passes.in_flight(), 0u);
    }
    EXPECT_EQ(b.executor.max_in_flight, 1u);
    EXPECT_THAT(b.outputs_of[ids[0]], ElementsAre(4, 5, 6));
    EXPECT_THAT(b.outputs_of[ids[1]], ElementsAre(6, 7));
    EXPECT_EQ(b.context.step, 3u) << "one for the prompts and a token of each, and two more tokens";
    b.expect_no_page_in_use();
}

TEST(StepLoop, AStepInFlightIsBackAfterTheNextOneIsSubmitted) {
    Bench b;
    const RequestId id = b.arrive(4, 3).id;
    EXPECT_EQ(b.step().sync_reason, "");
    EXPECT_EQ(b.passes.in_flight(), 1u);
    EXPECT_THAT(b.outputs_of[id], IsEmpty());
    EXPECT_EQ(b.step().sync_reason, "");
    EXPECT_THAT(b.in_flight_at_plans, ElementsAre(1));
    EXPECT_EQ(b.passes.in_flight(), 1u);
    EXPECT_THAT(b.outputs_of[id], ElementsAre(4));
    b.run_all();
    EXPECT_EQ(b.executor.max_in_flight, 2u);
    EXPECT_THAT(b.outputs_of[id], ElementsAre(4, 5, 6)) << "as in turn";
    b.expect_no_page_in_use();
}

// Why the step in flight must be back before the next one is planned.
struct Wait {
    const char* reason;
    void (*bring_about)(Bench&);
    size_t in_flight_afterwards; // the next one may be, where it is the one before that hindered
};

TEST(StepLoop, AStepThatMustBeBackIsBackWhenTheNextOneIsPlanned) {
    const Wait all[] = {
        {"swap", [](Bench& b) { b.computing.post(); }, 0},
        {"probation",
         [](Bench& b) {
             b.other.in_pass = false; // so that it enters beside steps
             b.other.post();
         },
         0},
        {"beam_search",
         [](Bench& b) {
             SamplingParams p;
             p.beam_width = p.n = 2;
             b.policy.plan = [&b](const pb_scheduler_in&, pb_scheduler_out&) {
                 b.in_flight_at_plans.push_back(b.passes.in_flight());
             };
             Sequence& first = b.run(4, 3, p);
             auto second = sequence(b.next_id++, 4, p);
             second->group = first.id;
             second->place = Place::kHeld;
             b.beams.add({&first, &b.sequences.add(std::move(second))});
         },
         0},
        {"host_sampler", [](Bench& b) { b.executor.source = execution::TokenSource::kModel; }, 0},
        {"history", [](Bench& b) { b.sequences.running()[0]->sampling.history_reason = "history"; }, 1},
        {"pooling",
         [](Bench& b) {
             Sequence& s = b.wait(4);
             request_of(s).pooling = PoolingType::kLast;
             b.pooling.add(s);
         },
         0},
    };
    for (const Wait& w : all) {
        SCOPED_TRACE(w.reason);
        Bench b;
        b.arrive(4, 8);
        ASSERT_EQ(b.step().sync_reason, "");
        ASSERT_EQ(b.passes.in_flight(), 1u);
        w.bring_about(b);
        EXPECT_EQ(b.step().sync_reason, w.reason);
        EXPECT_THAT(b.in_flight_at_plans, ElementsAre(0));
        EXPECT_EQ(b.passes.in_flight(), w.in_flight_afterwards);
    }
}

TEST(StepLoop, ASwapOfWhatComputesEntersWhereNothingIsInFlight) {
    Bench b;
    const RequestId id = b.arrive(4, 5).id;
    b.step();
    b.computing.post();
    b.step();
    EXPECT_EQ(b.computing.entered, 0);
    EXPECT_EQ(b.step().sync_reason, "probation");
    EXPECT_EQ(b.computing.entered, 1);
    EXPECT_EQ(b.computing.committed, 1) << "one step was to pass";
    EXPECT_EQ(b.step().sync_reason, "") << "steps are in flight again";
    b.run_all();
    EXPECT_THAT(b.outputs_of[id], ElementsAre(4, 5, 6, 7, 8));
}

TEST(StepLoop, AnEngineWithoutRequestsStillLetsASwapIn) {
    Bench b;
    EXPECT_FALSE(b.part.has_unfinished());
    b.computing.post();
    EXPECT_TRUE(b.part.has_unfinished());
    b.step();
    EXPECT_EQ(b.computing.entered, 1);
    EXPECT_FALSE(b.part.has_unfinished()) << "its probation needs steps that compute";
}

TEST(StepLoop, WhatIsPreemptedInFlightIsBackFirstAndKeepsItsToken) {
    Bench b;
    Sequence& s = b.arrive(4, 3);
    const RequestId id = s.id;
    b.step();
    const auto go_on = b.policy.plan;
    b.policy.plan = [&](const pb_scheduler_in& in, pb_scheduler_out& out) {
        b.in_flight_at_plans.push_back(b.passes.in_flight());
        for (uint32_t i = 0; i < in.running_count; ++i) out.preempts[out.preempt_count++] = {in.running[i].id, 0, 0};
    };
    EXPECT_EQ(b.step().sync_reason, "preemption");
    EXPECT_THAT(b.in_flight_at_plans, ElementsAre(1, 0)) << "it is asked again about what is known then";
    EXPECT_EQ(s.place, Place::kWaiting);
    EXPECT_THAT(b.outputs_of[id], ElementsAre(4));
    b.policy.plan = go_on;
    b.run_all();
    EXPECT_THAT(b.outputs_of[id], ElementsAre(4, 5, 6));
    b.expect_no_page_in_use();
}

TEST(StepLoop, OfTwoPlansOfAStepTheLastIsApplied) {
    Bench b;
    Sequence& s = b.arrive(4, 3);
    const RequestId id = s.id;
    b.step();
    std::vector<uint64_t> steps;
    b.policy.plan = [&](const pb_scheduler_in& in, pb_scheduler_out& out) {
        steps.push_back(in.step);
        if (steps.size() == 1) out.preempts[out.preempt_count++] = {in.running[0].id, 0, 0};
        else plan_all(in, out);
    };
    const StepReport r = b.step();
    EXPECT_EQ(r.sync_reason, "preemption");
    EXPECT_THAT(steps, ElementsAre(r.step, r.step));
    EXPECT_EQ(r.preemption.preemptions, 0u);
    EXPECT_EQ(s.place, Place::kRunning);
    b.run_all();
    EXPECT_THAT(b.outputs_of[id], ElementsAre(4, 5, 6));
    b.expect_no_page_in_use();
}

TEST(StepLoop, AStepThatFailsOnProbationIsComputedAnewByThePredecessor) {
    for (const bool in_wait : {false, true}) {
        SCOPED_TRACE(in_wait ? "wait" : "submit");
        Bench b;
        const RequestId ids[] = {b.arrive(4, 3).id, b.arrive(6, 3).id};
        b.other.in_pass = false;
        b.computing.post();
        b.other.post();
        (in_wait ? b.executor.wait_fails : b.executor.fails) = "it cannot multiply";
        const StepReport r = b.step();
        EXPECT_EQ(b.computing.rolled_back, 1);
        ASSERT_FALSE(r.swaps.empty());
        EXPECT_EQ(r.swaps.back().phase, "run");
        EXPECT_EQ(r.swaps.back().reason, "it cannot multiply");
        EXPECT_EQ(b.other.committed, 0) << "a step that failed is none that it has passed";
        EXPECT_EQ(b.passes.in_flight(), 0u);
        if (in_wait) {
            EXPECT_EQ(b.kv.pool().used(), 0u) << "nothing that the step wrote is kept";
        }
        b.step();
        EXPECT_EQ(b.other.committed, 1);
        b.run_all();
        EXPECT_THAT(b.outputs_of[ids[0]], ElementsAre(4, 5, 6));
        EXPECT_THAT(b.outputs_of[ids[1]], ElementsAre(6, 7, 8));
        EXPECT_EQ(b.ends[ids[0]].first, FinishReason::kLength);
        b.expect_no_page_in_use();
    }
}

TEST(StepLoop, OfTwoOnProbationTheOneThatTheFailureNamesGoesBack) {
    static const pb_component second = [] {
        pb_component out = kFakeSampler;
        out.name = "second";
        return out;
    }();
    Bench b;
    b.computing.post();
    auto swap = b.other.slot().line().prepare(play<FakeSampler>(second).component, named("model", "second"));
    b.other.slot().line().post(swap);
    b.swaps.at_boundary(false);
    ASSERT_TRUE(b.computing.slot().previous() && b.other.slot().previous());
    EXPECT_TRUE(b.swaps.recover(fail("sampler 'second' failed in forward: no memory")));
    EXPECT_EQ(b.other.rolled_back, 1);
    EXPECT_EQ(b.computing.rolled_back, 0);
    EXPECT_TRUE(b.swaps.recover(fail("the GPU stopped"))) << "which names none";
    EXPECT_EQ(b.computing.rolled_back, 1);
    EXPECT_FALSE(b.swaps.recover(fail("the GPU stopped")));
}

TEST(StepLoop, AStepThatFailsOtherwiseEndsAllRequests) {
    Bench b;
    const RequestId ids[] = {b.arrive(4, 3).id, b.arrive(6, 3).id};
    b.step();
    b.executor.fails = "the device is gone";
    const auto failed = b.part.step();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error(), "the device is gone");
    EXPECT_EQ(b.executor.cancels, 1u);
    for (const RequestId id : ids) {
        EXPECT_EQ(b.ends[id].first, FinishReason::kError);
        EXPECT_EQ(b.ends[id].second, "the device is gone");
    }
    EXPECT_FALSE(b.part.has_unfinished());
    b.expect_no_page_in_use();
}

TEST(StepLoop, AnIdleEngineWaitsForTheNextArrival) {
    Bench b("off");
    auto made = sequence(b.next_id++, 4);
    request_of(*made).arrival_ns = 1'000'000'000;
    Sequence& s = b.sequences.add(std::move(made));
    EXPECT_EQ(b.step().start_ns, 1'000'000'000u);
    EXPECT_EQ(s.outputs(), 1u) << "it is computed in the step that waited for it";
}

TEST(StepLoop, ARequestThatIsAbortedWithinAStepEndsWithIt) {
    Bench b("off");
    Sequence& s = b.arrive(4, 8);
    const RequestId id = s.id;
    request_of(s).on_output = [&, record = request_of(s).on_output](const RequestOutput& delta) {
        record(delta);
        if (delta.finish == FinishReason::kNone) b.lifecycle.abort(id);
    };
    b.step();
    EXPECT_EQ(b.ends[id].first, FinishReason::kAbort);
    EXPECT_THAT(b.outputs_of[id], ElementsAre(4));
    EXPECT_FALSE(b.part.has_unfinished());
    b.expect_no_page_in_use();
}

TEST(StepLoop, WhatIsNotedBetweenTwoStepsIsInTheReportOfTheSecond) {
    Bench b("off");
    const RequestId id = b.arrive(4, 8).id;
    b.arrive(4, 8);
    EXPECT_EQ(b.step().work.finished, 0u);
    b.lifecycle.abort(id);
    b.report().calls.kv_policy_faults += 1; // as the pages of the aborted one came back
    b.report().calls.kv_update_ns += 5;
    EXPECT_EQ(b.context.shown().step, 1u) << "until a step begins, the latest one is shown";
    EXPECT_EQ(b.context.shown().work.finished, 0u);
    const StepReport next = b.step();
    EXPECT_EQ(next.work.finished, 1u);
    EXPECT_EQ(next.calls.kv_policy_faults, 1u);
    EXPECT_EQ(next.calls.kv_update_ns, 0u) << "none of the step's time";
    const StepReport last = b.step();
    EXPECT_EQ(last.work.finished, 0u) << "once";
    EXPECT_EQ(last.calls.kv_policy_faults, 0u);
}

struct Seen final : StepObserver {
    explicit Seen(const FakeExecutor& its) : executor(its) {}
    void on_planned(const StepPlan& plan) override {
        planned.push_back(plan.items.size());
        waiting_then.push_back(static_cast<size_t>(std::ranges::count(
            plan.items, Place::kWaiting, [](const StepPlan::Item& item) { return item.sequence->place; })));
    }
    void on_placed(const std::vector<Placed>& step) override {
        placed.push_back(step.size());
        submitted_then.push_back(executor.submitted);
    }
    void on_end(const StepReport& report) override { ended.push_back(report.step); }
    const FakeExecutor& executor;
    std::vector<size_t> planned, waiting_then, placed, submitted_then, ended;
};

TEST(StepLoop, ObserversSeeThePlanBeforeItIsComputedAndTheEndOfStepsThatDidNotFail) {
    Bench b("off");
    Seen seen(b.executor);
    b.part.observers().add(seen);
    b.arrive(4, 8);
    b.arrive(4, 8);
    b.step();
    b.executor.fails = "the device is gone";
    EXPECT_FALSE(b.part.step());
    EXPECT_THAT(seen.planned, ElementsAre(2, 2));
    EXPECT_THAT(seen.waiting_then, ElementsAre(2, 0)) << "a plan is shown before anything of it is done";
    EXPECT_THAT(seen.placed, ElementsAre(2, 2));
    EXPECT_THAT(seen.submitted_then, ElementsAre(0, 1));
    EXPECT_THAT(seen.ended, ElementsAre(1));
    b.part.observers().remove(seen);
    b.step();
    EXPECT_THAT(seen.ended, ElementsAre(1));
}

TEST(StepLoop, DraftsAreMadeOnlyWhereNothingIsInFlight) {
    for (const char* sync_reason : {"off", ""}) {
        World w;
        w.settings.num_speculative_tokens = 2;
        Bench b(sync_reason, std::move(w));
        size_t asked = 0;
        b.proposer.proposed = [&](ProposeBatch&) {
            EXPECT_EQ(b.passes.in_flight(), 0u);
            asked += 1;
        };
        b.arrive(4, 8);
        b.step();
        b.step();
        EXPECT_EQ(asked, *sync_reason ? 2u : 0u);
    }
}

TEST(StepLoop, CopiesThatNoStepWouldMakeAreMadeWhenNoRequestIsLeft) {
    Bench b("off");
    b.arrive(4, 2);
    b.step();
    b.policy.plan = [&b](const pb_scheduler_in& in, pb_scheduler_out& out) {
        b.kv.copies().add({1, 0, kv::Way::kWithin});
        plan_all(in, out);
    };
    b.step(); // the last one, which makes the copy itself
    ASSERT_FALSE(b.part.has_unfinished());
    EXPECT_THAT(b.executor.copied, ElementsAre(kv::PageCopy{1, 0}));
    b.step();
    EXPECT_THAT(b.executor.copied, ElementsAre(kv::PageCopy{1, 0}, kv::PageCopy{1, 0})) << "by itself";
    EXPECT_EQ(b.executor.tokens_of_steps.size(), 2u);
    EXPECT_THAT(b.kv.copies().copies(), IsEmpty());
}

}  // namespace
}  // namespace patchbay::engine::testing::step_loop_test
