// Steps that run nothing while there is work: how many end the engine, what they wait for, and what ends the count.
#include "engine/loop/progress.hpp"

#include <gmock/gmock.h>

#include "engine/scheduling/scheduler_view.hpp"
#include "unit/engine_parts/neighbours.hpp"
#include "unit/host/slot_steps.hpp"

namespace patchbay::engine::testing::progress_test {
namespace {

using ::testing::HasSubstr;

struct Bench : QueueNeighbours {
    Bench() { scheduler.connect(view); }
    int idle_steps_until_it_fails(int max_steps) { // max_steps: none failed
        for (int i = 1; i <= max_steps; ++i)
            if (const Result<> done = progress.check(true); !done) {
                error = done.error();
                return i;
            }
        return max_steps;
    }

    PressureMonitor pressure;
    SchedulerView view{settings, sequences, kv, hints, beams.room(), pressure};
    Progress progress{clock, sequences, scheduler};
    std::string error;
};

TEST(Progress, AThousandIdleStepsInARowEndTheEngine) {
    Bench b;
    b.wait(4);
    b.wait(4);
    EXPECT_EQ(b.idle_steps_until_it_fails(2000), 1000);
    EXPECT_THAT(b.error, HasSubstr("scheduler 'fake' ran nothing for 1000 steps in a row with 2 requests unfinished"));
}

TEST(Progress, AStepThatRunsSomethingBeginsTheCountAnew) {
    Bench b;
    b.wait(4);
    ASSERT_EQ(b.idle_steps_until_it_fails(999), 999);
    ASSERT_TRUE(b.progress.check(false));
    EXPECT_EQ(b.idle_steps_until_it_fails(2000), 1000);
}

TEST(Progress, WaitsForTheNextArrivalForAsLongAsThereIsOne) {
    Bench b;
    b.wait(4);
    auto later = sequence(b.next_id++, 4);
    request_of(*later).arrival_ns = 5000;
    b.sequences.add(std::move(later));
    ASSERT_TRUE(b.progress.check(true));
    EXPECT_EQ(b.clock.now_ns(), 0u) << "the next step may run what this one could not";
    EXPECT_EQ(b.idle_steps_until_it_fails(2000), 2000);
    EXPECT_TRUE(b.error.empty()) << b.error;
    EXPECT_EQ(b.clock.now_ns(), 5000u);
}

TEST(Progress, APolicyThatWaitsOnPurposeIsAskedAgainAfterAMillisecond) {
    Bench b;
    b.wait(4);
    EXPECT_EQ(b.idle_steps_until_it_fails(51), 51);
    EXPECT_EQ(b.clock.now_ns(), 50'000'000u) << "the first idle step is followed at once";
    auto later = sequence(b.next_id++, 4);
    request_of(*later).arrival_ns = 51'500'000;
    b.sequences.add(std::move(later));
    ASSERT_TRUE(b.progress.check(true));
    EXPECT_EQ(b.clock.now_ns(), 51'000'000u) << "long before the next arrival";
    ASSERT_TRUE(b.progress.check(true));
    EXPECT_EQ(b.clock.now_ns(), 51'500'000u);
}

TEST(Progress, WaitsBeforeAStepOnlyIfThereIsNothingElseToDo) {
    Bench b;
    auto later = sequence(b.next_id++, 4);
    request_of(*later).arrival_ns = 5000;
    b.sequences.add(std::move(later));
    Sequence& waits = b.wait(4);
    b.progress.wait_if_idle();
    EXPECT_EQ(b.clock.now_ns(), 0u);
    b.admission.leave(waits);
    b.progress.wait_if_idle();
    EXPECT_EQ(b.clock.now_ns(), 5000u);
}

TEST(Progress, ASchedulerOnProbationLosesItsSlotAndTheCountBeginsAnew) {
    Bench b;
    b.wait(4);
    Played<FakeScheduler> next = play<FakeScheduler>(kFakeScheduler);
    const auto swap = host::testing::put_on_probation(b.scheduler.slot(), std::move(next.component), "scheduler",
                                                      "fake", b.context.step, 5000);
    ASSERT_NE(b.scheduler.slot().previous(), nullptr);
    ASSERT_EQ(b.idle_steps_until_it_fails(1000), 1000);
    EXPECT_TRUE(b.error.empty()) << b.error;
    EXPECT_EQ(b.scheduler.slot().previous(), nullptr) << "its predecessor is back";
    EXPECT_EQ(swap->record().reason, "ran nothing for 1000 steps in a row");
    EXPECT_EQ(b.idle_steps_until_it_fails(2000), 1000) << "of the predecessor's own";
}

}  // namespace
}  // namespace patchbay::engine::testing::progress_test
