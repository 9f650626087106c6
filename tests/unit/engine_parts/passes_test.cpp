// Steps through an executor that a test plays: in which order they come back, and what a poisoned one costs.
#include "engine/loop/passes.hpp"

#include <gmock/gmock.h>

#include "unit/engine_parts/step_neighbours.hpp"

namespace patchbay::engine::testing::passes_test {
namespace {

using ::testing::ElementsAre;

struct Bench : StepNeighbours {
    Bench() { executor.overlaps = true; }
    // Tokens of the prompt of one that runs, and a row once all are computed; with a step in flight: the token after.
    Result<> submit(Sequence& s, uint32_t tokens) {
        const uint32_t begin = s.computed + s.in_flight.tokens, known = s.confirmed() + s.in_flight.placeholders;
        if (!kv.tables().grow(s.kv.table, begin + tokens)) return fail("there are too few pages");
        step = {{&s, tokens, known, begin + tokens >= known ? begin + tokens - known + 1 : 0}};
        return part.submit(step, {.overlaps = true});
    }

    std::vector<Placed> step;
    Passes& part = passes;
};

// A token is its position in the sequence.
TEST(Passes, StepsComeBackInTheOrderInWhichTheyWereSubmitted) {
    Bench b;
    Sequence& s = b.run(6, 0);
    ASSERT_TRUE(b.submit(s, 6));
    ASSERT_TRUE(b.submit(s, 1)) << "the token that the first one makes";
    EXPECT_EQ(b.part.in_flight(), 2u);
    EXPECT_EQ(s.outputs(), 0u);
    ASSERT_TRUE(b.part.collect());
    EXPECT_EQ(b.part.in_flight(), 1u);
    EXPECT_EQ(b.part.collected(), 1u);
    EXPECT_EQ(s.tokens.back(), 6);
    EXPECT_EQ(s.computed, 6u);
    ASSERT_TRUE(b.part.collect());
    EXPECT_EQ(s.tokens.back(), 7);
    EXPECT_EQ(s.outputs(), 2u);
    EXPECT_EQ(b.part.in_flight(), 0u);
}

TEST(Passes, AStepThatWasGivenATokenThatIsNoneIsComputedAnew) {
    Bench b;
    Sequence &good = b.run(4, 0), &bad = b.run(4, 0);
    b.executor.token = [&](const pb_sample_row& row) {
        return row.id == bad.id ? -7 : static_cast<int32_t>(row.position);
    };
    for (Sequence* s : {&good, &bad}) ASSERT_TRUE(b.kv.tables().grow(s->kv.table, 5));
    b.step = {{&good, 4, 4, 1}, {&bad, 4, 4, 1}};
    ASSERT_TRUE(b.part.submit(b.step, {.overlaps = true}));
    b.step = {{&good, 1, 5, 1}, {&bad, 1, 5, 1}};
    ASSERT_TRUE(b.part.submit(b.step, {.overlaps = true}));
    ASSERT_FALSE(b.part.oldest_is_poisoned());
    const RequestId failed = bad.id;
    ASSERT_TRUE(b.part.collect());
    EXPECT_EQ(b.sequences.find(failed), nullptr) << "it failed alone";
    EXPECT_TRUE(b.part.oldest_is_poisoned());
    ASSERT_TRUE(b.part.collect());
    EXPECT_EQ(b.part.in_flight(), 0u);
    EXPECT_EQ(b.part.collected(), 1u) << "the poisoned one gave nothing";
    EXPECT_EQ(b.executor.cancels, 1u);
    EXPECT_EQ(good.computed, 0u);
    EXPECT_THAT(std::vector(good.tokens.begin() + 4, good.tokens.end()), ElementsAre(4)) << "what it had before";
    EXPECT_EQ(good.in_flight.tokens, 0u);
    EXPECT_EQ(b.kv.pool().used(), good.kv.table.held);
}

TEST(Passes, ThoseOfAStepThatIsComputedAnewKeepTheirOrder) {
    Bench b;
    std::vector<Sequence*> all;
    for (int i = 0; i < 3; ++i) all.push_back(&b.run(4, 0));
    const RequestId bad = all[1]->id;
    b.executor.token = [&](const pb_sample_row& row) {
        return row.id == bad ? -7 : static_cast<int32_t>(row.position);
    };
    for (Sequence* s : all) ASSERT_TRUE(b.kv.tables().grow(s->kv.table, 5));
    for (const uint32_t tokens : {4u, 1u}) {
        b.step.clear();
        for (Sequence* s : all) b.step.push_back({s, tokens, tokens == 4 ? 4u : 5u, 1});
        ASSERT_TRUE(b.part.submit(b.step, {.overlaps = true}));
    }
    ASSERT_TRUE(b.part.collect());
    ASSERT_TRUE(b.part.collect());
    std::vector<RequestId> waiting;
    for (const pb_sequence& record : b.sequences.waiting().records()) waiting.push_back(record.id);
    EXPECT_THAT(waiting, ElementsAre(all[0]->id, all[2]->id));
}

TEST(Passes, BeamsOfAStepThatIsGivenUpAreCountedOnce) {
    Bench b;
    b.context.step = 7;
    SamplingParams search;
    search.beam_width = search.n = 3;
    std::vector<Sequence*> beams;
    for (uint32_t i = 0; i < search.n; ++i) {
        beams.push_back(&b.run(4, 0, search));
        beams[i]->group = beams[0]->id;
        beams[i]->index = i;
        ASSERT_TRUE(b.kv.tables().grow(beams[i]->kv.table, 4));
        b.step.push_back({beams[i], 4, 4, 1});
    }
    b.beams.add(beams);
    ASSERT_TRUE(b.part.submit(b.step, {.overlaps = true}));
    b.part.give_up();
    EXPECT_EQ(b.report().preemption.preemptions, search.n);
    for (const Sequence* s : beams) {
        EXPECT_EQ(s->record.preemptions, 1u);
        EXPECT_EQ(s->in_flight.tokens, 0u);
    }
    EXPECT_THAT(b.waiting(), ElementsAre(beams[0]->id)) << "the others wait with it";
    EXPECT_EQ(b.kv.pool().used(), 0u);
}

TEST(Passes, AFailureOfTheExecutorIsTheSteps) {
    Bench b;
    Sequence& s = b.run(6, 0);
    b.executor.fails = "the device is gone";
    const auto done = b.submit(s, 6);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error(), "the device is gone");
    EXPECT_EQ(b.part.in_flight(), 0u);
    EXPECT_EQ(s.in_flight.tokens, 0u);
}

TEST(Passes, TimesGoToTheirPhases) {
    Bench b;
    Sequence& s = b.run(6, 0);
    b.executor.token = [&](const pb_sample_row&) {
        b.clock.advance_ns(40);
        return 9;
    };
    b.context.now_ns = b.clock.now_ns();
    ASSERT_TRUE(b.submit(s, 6));
    EXPECT_EQ(b.report().phase_ns[static_cast<size_t>(Phase::kRun)], 40u);
    EXPECT_EQ(b.report().phase_ns[static_cast<size_t>(Phase::kBuild)], 0u);
}

}  // namespace
}  // namespace patchbay::engine::testing::passes_test
