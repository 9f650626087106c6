#include "parallel/step_trial.hpp"

#include <gtest/gtest.h>

namespace patchbay::parallel::step_trial_test {
namespace {

TEST(StepTrial, KeepsTheFirstFault) {
    StepTrial trial;
    EXPECT_FALSE(trial.is_of(7));
    trial.begin(7);
    EXPECT_TRUE(trial.is_of(7));
    EXPECT_FALSE(trial.fault());
    EXPECT_TRUE(trial.fails(fail(StatusCode::kExhausted, "rank 2: no memory")));
    EXPECT_FALSE(trial.fails(fail("rank 1: disconnected")));
    ASSERT_TRUE(trial.fault());
    EXPECT_EQ(trial.fault()->text, "rank 2: no memory");
    EXPECT_EQ(trial.fault()->code, StatusCode::kExhausted);
}

TEST(StepTrial, TakesNoFaultOnceItIsGivenUp) { // by rank 0's own
    StepTrial trial;
    trial.begin(7);
    trial.give_up();
    EXPECT_FALSE(trial.fails(fail("rank 1: disconnected")));
    EXPECT_FALSE(trial.fault());
}

TEST(StepTrial, BeginsAnew) {
    StepTrial trial;
    trial.begin(7);
    trial.give_up();
    trial.begin(8);
    EXPECT_FALSE(trial.is_of(7));
    EXPECT_TRUE(trial.fails(fail("rank 1: no memory")));
    trial.end();
    EXPECT_FALSE(trial.is_of(8));
    EXPECT_FALSE(trial.fault());
}

}  // namespace
}  // namespace patchbay::parallel::step_trial_test
