// The fault of a step, as devices of the SDK keep it.
#include <gmock/gmock.h>

#include "patchbay/sdk/step_fault.hpp"

namespace patchbay::step_fault_test {
namespace {

TEST(StepFault, EndThrowsTheStepsFaultOnce) {
    StepFault fault;
    fault.end_step();
    fault.set_fault("linear: x is too small");
    EXPECT_TRUE(fault.faulty());
    try {
        fault.end_step();
        ADD_FAILURE() << "the step ends without its fault";
    } catch (const Error& error) {
        EXPECT_EQ(error.code, PB_INVALID);
        EXPECT_STREQ(error.what(), "linear: x is too small");
    }
    EXPECT_FALSE(fault.faulty());
    fault.end_step();
}

TEST(StepFault, AStepBeginsWithoutThatOfTheLastOne) {
    StepFault fault;
    fault.set_fault("of a step that was given up");
    fault.begin_step();
    EXPECT_FALSE(fault.faulty());
    fault.end_step();
}

TEST(StepFault, IsTakenOnce) {
    StepFault fault;
    EXPECT_EQ(fault.take_fault(), "");
    fault.set_fault("add: x and y differ");
    EXPECT_EQ(fault.take_fault(), "add: x and y differ");
    EXPECT_FALSE(fault.faulty());
}

}  // namespace
}  // namespace patchbay::step_fault_test
