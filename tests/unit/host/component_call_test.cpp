// Rule 5 of abi.h: no object is in two calls at once.
#include "host/component_call.hpp"

#include <gtest/gtest.h>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <latch>
#include <thread>

namespace patchbay::host::component_call_test {
namespace {

// One thread is in plan() of an object while another one calls save().
void call_twice(bool on_any_thread) {
    spdlog::set_default_logger(spdlog::stderr_logger_st("test"));
    CallOwner owner;
    std::latch inside(1), over(1);
    std::thread first([&] {
        const ComponentCall plan("scheduler 'slow'", owner, "plan");
        inside.count_down();
        over.wait();
    });
    inside.wait();
    {
        const ComponentCall second("scheduler 'slow'", owner, "save", on_any_thread);
    }
    over.count_down();
    first.join();
}

class ComponentCallDeathTest : public ::testing::Test {
  protected:
    void SetUp() override { // it is read when a process begins
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        setenv("PATCHBAY_CHECK_CALLS", "1", 1);
    }
};

TEST_F(ComponentCallDeathTest, ASecondCallOfAnObjectEndsTheHost) {
    EXPECT_DEATH(call_twice(false), "scheduler 'slow': save\\(\\) was called while another thread was in plan\\(\\)");
}

TEST_F(ComponentCallDeathTest, FunctionsOfAnyThreadAreCalledBesideOthers) {
    const auto done = [] {
        call_twice(true);
        std::exit(kChecksCalls ? 7 : 0);
    };
    EXPECT_EXIT(done(), ::testing::ExitedWithCode(7), "");
}

TEST_F(ComponentCallDeathTest, ACallWithinACallOfTheSameThreadIsNone) {
    const auto done = [] {
        CallOwner owner;
        const ComponentCall outer("device 'one'", owner, "begin_step");
        { const ComponentCall inner("device 'one'", owner, "queue"); }
        const ComponentCall after("device 'one'", owner, "queue");
        std::exit(kChecksCalls ? 7 : 0);
    };
    EXPECT_EXIT(done(), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace patchbay::host::component_call_test
