#include "serve/slot_journal.hpp"

#include <gtest/gtest.h>

namespace patchbay::serve::testing::slot_journal_test {
namespace {

host::SwapRecord swap_of_scheduler(host::SwapState state, uint64_t step, uint64_t end_step) {
    host::SwapRecord out;
    out.kind = "scheduler";
    out.to.kind = "scheduler";
    out.to.name = "sjf";
    out.state = state;
    out.step = step;
    out.end_step = end_step;
    return out;
}

engine::StepReport report_of(uint64_t step, std::vector<host::SwapRecord> swaps) {
    engine::StepReport out;
    out.step = step;
    out.swaps = std::move(swaps);
    return out;
}

// An engine makes the record of a swap known within the step, before it reports it: who is answered in between would
// not find what he swapped in the status.
TEST(SlotJournal, KnowsWhatBecameOfASwapWhenItsStepIsReported) {
    SlotJournal journal({{.kind = "scheduler", .name = "fcfs"}}, {});
    const host::SwapRecord entered = swap_of_scheduler(host::SwapState::kOnProbation, 3, 0);
    const host::SwapRecord committed = swap_of_scheduler(host::SwapState::kCommitted, 3, 5);
    journal.on_step(report_of(2, {}));
    EXPECT_FALSE(journal.state().knows(entered));
    EXPECT_EQ(journal.state().slot("scheduler")->identity.name, "fcfs");

    journal.on_step(report_of(3, {entered}));
    EXPECT_TRUE(journal.state().knows(entered));
    EXPECT_FALSE(journal.state().knows(committed));
    EXPECT_EQ(journal.state().slot("scheduler")->identity.name, "sjf");
    EXPECT_TRUE(journal.state().slot("scheduler")->on_probation);

    journal.on_step(report_of(5, {committed}));
    EXPECT_TRUE(journal.state().knows(committed));
    EXPECT_FALSE(journal.state().slot("scheduler")->on_probation);
}

TEST(SlotJournal, KnowsARefusalThatNoStepReports) {
    const SlotJournal journal({{.kind = "scheduler", .name = "fcfs"}}, {});
    EXPECT_TRUE(journal.state().knows(swap_of_scheduler(host::SwapState::kRefused, 0, 0)));
}

}  // namespace
}  // namespace patchbay::serve::testing::slot_journal_test
