// Steps of a device and the time that one which computes nothing takes for them.
#include "runner/device_steps.hpp"

#include <gmock/gmock.h>

#include "fake_device.hpp"

namespace patchbay::runner::device_steps_test {
namespace {

using testing::PlayedDevice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void submit_two(DeviceSteps& steps) {
    CallTimes times;
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(steps.begin(times));
        ASSERT_TRUE(steps.submit(true));
    }
}

TEST(DeviceSteps, ReturnWhetherTheOldestSamples) {
    PlayedDevice device;
    VirtualClock clock;
    DeviceSteps steps(device.opened, clock);
    CallTimes times;
    for (const bool samples : {true, false}) {
        ASSERT_TRUE(steps.begin(times));
        ASSERT_TRUE(steps.submit(samples));
    }
    EXPECT_TRUE(*steps.wait());
    EXPECT_FALSE(*steps.wait());
    EXPECT_THAT(device.fake.calls, ElementsAre("begin", "submit", "begin", "submit", "wait", "wait"));
    EXPECT_EQ(clock.now_ns(), 0u) << "a device that computes takes its time itself";
}

TEST(DeviceSteps, LetTheChargedTimePassOnTheClock) {
    PlayedDevice device(false);
    VirtualClock clock;
    DeviceSteps steps(device.opened, clock);
    CallTimes times;
    device.fake.charged = 700;
    ASSERT_TRUE(steps.begin(times));
    uint64_t ns = 0;
    ASSERT_TRUE(steps.end(times, ns));
    EXPECT_EQ(clock.now_ns(), 700u);
    EXPECT_EQ(ns, 700u);
    EXPECT_EQ(times.device_end, 0u) << "the time is the model's, as the caller says";
}

// While one runs the host does what it does for the next.
TEST(DeviceSteps, InFlightRunOneAfterTheOther) {
    PlayedDevice device(false);
    VirtualClock clock;
    DeviceSteps steps(device.opened, clock);
    CallTimes times;
    device.fake.charged = 700;
    device.fake.host = 100;
    for (int i = 0; i < 2; ++i) {
        steps.pass_host_time();
        ASSERT_TRUE(steps.begin(times));
        ASSERT_TRUE(steps.submit(true));
    }
    EXPECT_EQ(clock.now_ns(), 200u);
    ASSERT_TRUE(steps.wait());
    EXPECT_EQ(clock.now_ns(), 800u);
    ASSERT_TRUE(steps.wait());
    EXPECT_EQ(clock.now_ns(), 1500u);
    clock.advance_ns(500); // it is idle
    ASSERT_TRUE(steps.begin(times));
    ASSERT_TRUE(steps.submit(true));
    ASSERT_TRUE(steps.wait());
    EXPECT_EQ(clock.now_ns(), 2700u);
}

TEST(DeviceSteps, AFaultIsOfTheStepThatIsWaitedFor) {
    PlayedDevice device;
    VirtualClock clock;
    DeviceSteps steps(device.opened, clock);
    submit_two(steps);
    device.fake.fault = "out of order";
    const auto first = steps.wait();
    ASSERT_FALSE(first);
    EXPECT_THAT(first.error(), HasSubstr("device 'fake': wait_step: out of order"));
    EXPECT_TRUE(steps.wait());
}

TEST(DeviceSteps, ThatAreAbandonedAreWaitedForOnceEach) {
    PlayedDevice device;
    VirtualClock clock;
    DeviceSteps steps(device.opened, clock);
    submit_two(steps);
    steps.abandon();
    steps.abandon();
    EXPECT_THAT(device.fake.calls, ElementsAre("begin", "submit", "begin", "submit", "wait", "wait"));
}

TEST(DeviceSteps, AreInFlightOnlyWhereTheDeviceFillsInTheTokensOfTheStepBefore) {
    VirtualClock clock;
    PlayedDevice simulated(false), computing;
    EXPECT_TRUE(DeviceSteps(simulated.opened, clock).can_submit());
    EXPECT_FALSE(DeviceSteps(computing.opened, clock).can_submit());
    computing.opened.ops.fill_placeholders = [](void*, const pb_tensor*, const pb_tensor*) {};
    EXPECT_TRUE(DeviceSteps(computing.opened, clock).can_submit());
    PlayedDevice of_host(true, false);
    of_host.opened.ops.fill_placeholders = computing.opened.ops.fill_placeholders;
    EXPECT_FALSE(DeviceSteps(of_host.opened, clock).can_submit());
}

}  // namespace
}  // namespace patchbay::runner::device_steps_test
