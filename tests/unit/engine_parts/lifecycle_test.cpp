// How sequences end: what each part holds of them is given back, and each output is closed exactly once.
#include "engine/loop/lifecycle.hpp"

#include <gmock/gmock.h>

#include "unit/engine_parts/commit_neighbours.hpp"

namespace patchbay::engine::testing::lifecycle_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

using Bench = EndingNeighbours;

TEST(Lifecycle, AnEndGivesBackPagesSlotsAndRecords) {
    World w;
    w.slots = 8;
    Bench b(std::move(w));
    Sequence& runs = b.run(6, 6);
    b.surprisals.of(runs.id).push_back(1);
    b.lifecycle.finish(runs, {FinishReason::kStop, "33"});
    EXPECT_EQ(b.kv.pool().used(), 0u);
    EXPECT_TRUE(runs.ended);
    EXPECT_TRUE(b.sequences.running().empty());
    EXPECT_EQ(b.surprisals.find(runs.id), nullptr);
    EXPECT_EQ(runs.output.delta.finish, FinishReason::kStop);
    EXPECT_EQ(runs.output.delta.stop_reason, "33");
    ASSERT_EQ(b.policy.finished.size(), 1u);
    EXPECT_EQ(b.policy.finished[0].id, runs.id);
    EXPECT_EQ(b.policy.finished[0].output_tokens, 0u);
    EXPECT_EQ(b.policy.finished[0].reason, PB_FINISH_STOP);
    EXPECT_THAT(b.drafting.ended, ElementsAre(runs.id));
    EXPECT_EQ(b.report().work.finished, 1u);
    EXPECT_EQ(b.sequences.find(runs.id), &runs) << "until its delta is handed out";

    Sequence& swapped = b.run(6, 6);
    ASSERT_TRUE(b.kv.swap().out(swapped.kv.table, 6, swapped.kv.swapped));
    swapped.computed = 0;
    b.admission.put_first(swapped);
    b.lifecycle.finish(swapped, {FinishReason::kAbort, ""});
    EXPECT_EQ(b.kv.swap().space().used(), 0u);
    EXPECT_THAT(b.waiting(), IsEmpty());
}

TEST(Lifecycle, TheSchedulerHearsOnlyOfTheEndOfWhatItWasShown) {
    Bench b;
    Sequence& pending = b.sequences.add(sequence(9, 4));
    b.lifecycle.finish(pending, {FinishReason::kAbort, ""});
    EXPECT_THAT(b.policy.finished, IsEmpty());
    EXPECT_TRUE(b.sequences.pending().empty());
}

TEST(Lifecycle, PagesThatAStepInFlightMayWriteToStayUntilItIsBack) {
    Bench b;
    Sequence& s = b.run(6, 4);
    ASSERT_TRUE(b.kv.tables().grow(s.kv.table, 6));
    b.in_flight.push({.items = {{&s, 2, 6, 1}}, .held = {}});
    b.lifecycle.finish(s, {FinishReason::kAbort, ""});
    EXPECT_EQ(b.kv.pool().used(), 2u);
    EXPECT_TRUE(b.in_flight.oldest().items.empty());
    b.in_flight.drop_oldest();
    EXPECT_EQ(b.kv.pool().used(), 0u);
}

TEST(Lifecycle, PagesThatADraftModelStillWantsStayWithASequenceThatEndsInAStep) {
    Bench b;
    b.drafting.keeps_pages = true;
    Sequence &in_step = b.run(4, 4), &between = b.run(4, 4);
    b.lifecycle.begin_step();
    b.lifecycle.finish(in_step, {FinishReason::kLength, ""});
    b.lifecycle.end_step();
    EXPECT_EQ(in_step.kv.table.held, 1u);
    b.lifecycle.finish(between, {FinishReason::kAbort, ""});
    EXPECT_EQ(between.kv.table.held, 0u) << "between steps nothing would come to take them";
    b.kv.tables().release(in_step.kv.table);
}

TEST(Lifecycle, TheFirstOfARequestReleasesThoseThatItHeldInTheirOrder) {
    Bench b;
    const auto all = b.add_siblings(3, 6), later = b.add_siblings(2, 6);
    Sequence& other = b.wait(4);
    b.lifecycle.release_siblings(*all[0]);
    b.lifecycle.release_siblings(*later[0]);
    EXPECT_THAT(b.waiting(), ElementsAre(all[0]->id, later[0]->id, other.id));
    b.lifecycle.admit_released();
    EXPECT_THAT(b.waiting(),
                ElementsAre(all[1]->id, all[2]->id, later[1]->id, all[0]->id, later[0]->id, other.id));
    b.lifecycle.admit_released(); // of none
    EXPECT_EQ(b.waiting().size(), 6u);
}

TEST(Lifecycle, AnAbortBetweenStepsEndsEachOutputOfTheRequestAtOnce) {
    Bench b;
    const auto all = b.add_siblings(3, 6);
    Sequence& other = b.wait(4);
    std::vector<uint32_t> ended;
    for (Sequence* s : all)
        request_of(*s).on_output = [&ended](const RequestOutput& out) {
            EXPECT_EQ(out.finish, FinishReason::kAbort);
            EXPECT_EQ(out.time_ns, 5u);
            ended.push_back(out.index);
        };
    for (Sequence* s : all) s->output.delta.index = s->index;
    b.clock.advance_ns(5);
    b.lifecycle.abort(all[0]->id);
    EXPECT_THAT(ended, ElementsAre(2, 1, 0));
    EXPECT_EQ(b.sequences.all().size(), 1u);
    EXPECT_THAT(b.waiting(), ElementsAre(other.id));
    EXPECT_TRUE(b.siblings.all().empty());
    b.lifecycle.abort(777); // which there is not
    EXPECT_EQ(b.sequences.all().size(), 1u);
}

TEST(Lifecycle, AnAbortWithinAStepIsKeptForItsEnd) {
    Bench b;
    Sequence& s = b.run(4, 4);
    b.lifecycle.begin_step();
    b.lifecycle.abort(s.id);
    EXPECT_FALSE(s.ended);
    EXPECT_TRUE(b.aborts.has(s.group));
    EXPECT_THAT(b.aborts.take(), ElementsAre(s.id));
    EXPECT_FALSE(b.aborts.has(s.group));
}

TEST(Lifecycle, AnIdOfAFurtherOutputIsNoRequest) {
    Bench b;
    const auto all = b.add_siblings(2, 6);
    b.lifecycle.abort(all[1]->id);
    EXPECT_FALSE(all[0]->ended);
    EXPECT_FALSE(all[1]->ended);
}

TEST(Lifecycle, ACallbackMayEndAnotherSequenceOfItsRequest) {
    Bench b;
    const auto all = b.add_siblings(3, 6);
    const RequestId request = all[0]->id;
    int calls = 0;
    for (Sequence* s : all)
        request_of(*s).on_output = [&](const RequestOutput&) {
            calls += 1;
            b.lifecycle.abort(request);
        };
    b.lifecycle.abort(request);
    EXPECT_EQ(calls, 3);
    EXPECT_TRUE(b.sequences.empty());
}

TEST(Lifecycle, WithAStepEndWhatItRefusedAndWhatWasAbortedInIt) {
    World w;
    w.settings.max_waiting = 1;
    Bench b(std::move(w));
    std::vector<std::pair<RequestId, std::string>> ended;
    const auto watched = [&](Sequence& s) {
        request_of(s).on_output = [&](const RequestOutput& out) {
            ended.push_back({out.id, std::string(name_of(out.finish)) + ": " + out.stop_reason});
        };
        return s.id;
    };
    const RequestId runs = watched(b.run(4, 4));
    b.lifecycle.begin_step();
    for (RequestId id : {11, 12}) watched(b.sequences.add(sequence(id, 4)));
    b.admission.admit();
    b.lifecycle.abort(runs);
    EXPECT_THAT(ended, IsEmpty()) << "they end with the step";
    b.lifecycle.end_step();
    EXPECT_THAT(ended, ElementsAre(Pair(12, "error: the queue is full: max_waiting is 1"), Pair(runs, "abort: ")));
    EXPECT_THAT(b.waiting(), ElementsAre(11));
}

TEST(Lifecycle, WhereTheEngineCannotGoOnAllEndInTheirOrderWithTheReason) {
    Bench b;
    std::vector<RequestId> ended;
    Sequence &waits = b.wait(4), &runs = b.run(4, 4), &done = b.run(4, 4);
    for (Sequence* s : {&waits, &runs, &done}) {
        request_of(*s).on_output = [&](const RequestOutput& out) {
            EXPECT_TRUE(b.sequences.empty()) << "all have left before the first hears of it";
            ended.push_back(out.id);
            if (out.id == done.id) {
                EXPECT_EQ(out.finish, FinishReason::kLength) << "it ended in this step";
            } else {
                EXPECT_EQ(out.finish, FinishReason::kError);
                EXPECT_EQ(out.stop_reason, "the device is gone");
                EXPECT_EQ(out.error_code, StatusCode::kFailed) << "it is not the requests' fault";
            }
        };
    }
    b.in_flight.push({.items = {{&runs, 2, 6, 1}}, .held = {}});
    b.lifecycle.finish(done, {FinishReason::kLength, ""});
    b.lifecycle.fail_all(fail(StatusCode::kInvalid, "the device is gone"));
    EXPECT_THAT(ended, ElementsAre(1, 2, 3));
    EXPECT_FALSE(b.in_flight.any());
    EXPECT_EQ(b.kv.pool().used(), 0u);
    EXPECT_EQ(b.report().work.finished, 3u);
}

}  // namespace
}  // namespace patchbay::engine::testing::lifecycle_test
