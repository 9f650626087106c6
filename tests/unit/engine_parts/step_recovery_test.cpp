// A step that fails: with a component on probation it is computed anew, and without one all requests end.
#include "engine/loop/step_recovery.hpp"

#include <gmock/gmock.h>

#include "engine/swap/swaps.hpp"
#include "unit/engine_parts/step_neighbours.hpp"

namespace patchbay::engine::testing::step_recovery_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Bench : StepNeighbours {
    Bench() {
        plugins = {named("scheduler", "fake"), named("sampler", "fake"), named("attention", "fake")};
        executor.overlaps = true;
    }
    // A component that has entered, and is on probation.
    void enter() {
        computing.post();
        swaps.at_boundary(false);
    }
    // One that runs, whose whole prompt is in flight, and pages for a token more.
    Sequence& submitted(uint32_t prompt_tokens) {
        Sequence& s = run(prompt_tokens, 0);
        request_of(s).on_output = [this](const RequestOutput& delta) { deltas.push_back(delta); };
        if (!kv.tables().grow(s.kv.table, prompt_tokens + 1)) throw std::runtime_error("too few pages");
        std::vector<Placed> step = {{&s, prompt_tokens, prompt_tokens, 1}};
        if (!passes.submit(step, {.overlaps = true})) throw std::runtime_error("it was not submitted");
        return s;
    }
    // Another path of drafts, which holds pages.
    void fork() {
        Sequence& s = decode(4, {50, 51});
        drafts.of(s.id).branches = {{60}};
        const std::vector<Placed> step = {all_of(s)};
        branches.fork(step);
        if (branches.all().empty()) throw std::runtime_error("there was no room for the path");
    }

    config::SwapSettings swap_settings{.probation_steps = 5, .max_call_ms = 0};
    FakeSwapPort computing{clock, context, journal};
    Swaps swaps{{swap_settings, {&computing}, journal, context, clock}};
    StepRecovery part{branches, passes, lifecycle, swaps};
    std::vector<RequestOutput> deltas;
};

TEST(StepRecovery, AStepThatIsDoneStays) {
    Bench b;
    b.enter();
    b.submitted(4);
    EXPECT_TRUE(b.part.or_recovered({}));
    EXPECT_FALSE(b.part.recovered());
    EXPECT_EQ(b.computing.rolled_back, 0);
    EXPECT_EQ(b.passes.in_flight(), 1u);
    EXPECT_EQ(b.executor.cancels, 0u);
}

TEST(StepRecovery, WithoutAPredecessorAFailureStaysOne) {
    Bench b;
    b.submitted(4);
    const Result<> done = b.part.or_recovered(fail(StatusCode::kExhausted, "there is no memory"));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error(), "there is no memory");
    EXPECT_EQ(done.code(), StatusCode::kExhausted);
    EXPECT_FALSE(b.part.recovered());
    EXPECT_EQ(b.passes.in_flight(), 1u) << "what becomes of it is up to the loop";
}

TEST(StepRecovery, OneThatDoesNotComputeIsNotToBlame) {
    Bench b;
    b.computing.in_pass = false;
    b.enter();
    EXPECT_FALSE(b.part.or_recovered(fail("the device is gone")));
    EXPECT_EQ(b.computing.rolled_back, 0);
}

TEST(StepRecovery, ThePredecessorComputesAnewAllThatWasInFlight) {
    Bench b;
    b.enter();
    b.fork();
    Sequence &first = b.submitted(4), &second = b.submitted(6);
    ASSERT_EQ(b.passes.in_flight(), 2u);
    const Result<> done = b.part.or_recovered(fail("it attends to nothing"));
    EXPECT_TRUE(done) << done.error();
    EXPECT_TRUE(b.part.recovered());
    EXPECT_EQ(b.computing.rolled_back, 1);
    EXPECT_EQ(b.report().swaps.back().phase, "run");
    EXPECT_EQ(b.report().swaps.back().reason, "it attends to nothing");
    EXPECT_EQ(b.plugins[2].name, "fake");
    EXPECT_GT(b.executor.cancels, 0u);
    EXPECT_EQ(b.passes.in_flight(), 0u);
    EXPECT_THAT(b.branches.all(), IsEmpty());
    for (const Sequence* s : {&first, &second}) {
        EXPECT_EQ(s->computed, 0u);
        EXPECT_EQ(s->in_flight.tokens, 0u);
        EXPECT_EQ(s->in_flight.placeholders, 0u);
        EXPECT_FALSE(s->ended);
        EXPECT_EQ(s->kv.table.held, 0u);
    }
    EXPECT_THAT(b.deltas, IsEmpty());
}

TEST(StepRecovery, OneWhoseProbationIsOverIsNotRolledBackASecondTime) {
    Bench b;
    b.enter();
    ASSERT_TRUE(b.part.or_recovered(fail("it attends to nothing")));
    EXPECT_FALSE(b.part.or_recovered(fail("nor does the one before it")));
    EXPECT_EQ(b.computing.rolled_back, 1);
}

TEST(StepRecovery, IsOfTheStepInWhichItHappened) {
    Bench b;
    b.enter();
    ASSERT_TRUE(b.part.or_recovered(fail("it attends to nothing")));
    b.part.begin_step();
    EXPECT_FALSE(b.part.recovered());
}

TEST(StepRecovery, AllRequestsEndWhereTheEngineCannotGoOn) {
    Bench b;
    b.fork();
    std::vector<RequestId> ids = {b.submitted(4).id, b.submitted(6).id};
    b.part.end_all(fail(StatusCode::kInvalid, "a plugin was refused"));
    std::vector<RequestId> ended;
    for (const RequestOutput& delta : b.deltas) {
        ended.push_back(delta.id);
        EXPECT_EQ(delta.finish, FinishReason::kError);
        EXPECT_EQ(delta.stop_reason, "a plugin was refused");
    }
    EXPECT_EQ(ended, ids);
    EXPECT_EQ(b.executor.cancels, 1u);
    EXPECT_EQ(b.passes.in_flight(), 0u);
    EXPECT_TRUE(b.sequences.all().empty());
    EXPECT_THAT(b.branches.all(), IsEmpty());
    EXPECT_EQ(b.kv.pool().used(), 0u);
}

}  // namespace
}  // namespace patchbay::engine::testing::step_recovery_test
