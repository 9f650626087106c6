// What other threads want of an engine that is stepped by its own loop.
#include "service/stepped_engine.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <thread>

#include "host/probe.hpp"
#include "host/prober.hpp"
#include "paths.hpp"
#include "unit/service/service_fixture.hpp"

namespace patchbay::service::testing::stepped_engine_test {
namespace {

using engine::testing::registry;
using engine::testing::tiny_model;

struct Bench {
    // Does what a loop does between two steps until another thread has its answer.
    template <class T>
    void serve_until_ready(std::future<T>& done) {
        while (done.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
            part.between_steps();
            std::this_thread::yield();
        }
    }
    VirtualClock clock;
    std::unique_ptr<engine::Engine> engine = make_engine(tiny_model(), clock);
    SteppedEngine part{*engine};
};

TEST(SteppedEngine, ACallIsMadeOnTheLoopsThreadBetweenTwoSteps) {
    Bench b;
    std::thread::id called_on;
    const engine::Engine* given = nullptr;
    auto called = std::async(std::launch::async, [&] {
        return b.part.call([&](engine::Engine& e) {
            called_on = std::this_thread::get_id();
            given = &e;
        });
    });
    b.serve_until_ready(called);
    EXPECT_TRUE(called.get());
    EXPECT_EQ(called_on, std::this_thread::get_id());
    EXPECT_EQ(given, b.engine.get());
}

TEST(SteppedEngine, ACallThatWaitsWhenTheLoopEndsIsNotMade) {
    Bench b;
    std::atomic<bool> made = false;
    std::promise<void> asks;
    auto called = std::async(std::launch::async, [&] {
        asks.set_value();
        return b.part.call([&](engine::Engine&) { made = true; });
    });
    asks.get_future().wait();
    b.part.end(); // before or after the call is in line
    EXPECT_FALSE(called.get());
    b.part.between_steps();
    EXPECT_FALSE(made);
    EXPECT_FALSE(b.part.call([&](engine::Engine&) { made = true; }));
    EXPECT_FALSE(made);
}

TEST(SteppedEngine, ItsStatusIsThatOfTheLatestStep) {
    Bench b;
    EXPECT_EQ(b.part.status().state, ServiceState::kRunning);
    EXPECT_EQ(b.part.status().steps, 0u);
    for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(b.engine->add_request(request(i, 4)));
    uint64_t steps = 0;
    while (b.engine->has_unfinished()) {
        b.part.between_steps();
        const auto report = b.engine->step();
        ASSERT_TRUE(report) << report.error();
        const ServiceStatus status = b.part.status();
        EXPECT_EQ(status.steps, ++steps);
        EXPECT_EQ(status.last.step, report->step);
        EXPECT_EQ(status.unfinished > 0, b.engine->has_unfinished());
    }
    EXPECT_FALSE(b.part.status().has_ended());
    b.part.end();
    EXPECT_EQ(b.part.status().state, ServiceState::kStopped);
    EXPECT_EQ(b.part.status().steps, steps);
}

TEST(SteppedEngine, ASwapIsPreparedBesideItsStepsAndEntersAtOneOfThem) {
    static host::Prober prober(host::ProbeOptions{.program = std::string(kBuildDir) + "/bin/patchbay-probe"});
    Bench b;
    ASSERT_TRUE(b.engine->add_request(request(1, 20)));
    auto asked = std::async(std::launch::async, [&] {
        return b.part.swap_together({{engine::SwapSlot::kScheduler, {"sjf", {}}, registry(), prober}});
    });
    b.serve_until_ready(asked);
    const auto swaps = asked.get();
    ASSERT_EQ(swaps.size(), 1u);
    while (b.engine->has_unfinished()) {
        b.part.between_steps();
        ASSERT_TRUE(b.engine->step());
    }
    EXPECT_EQ(swaps[0]->record().to.name, "sjf");
    EXPECT_NE(swaps[0]->record().state, host::SwapState::kRefused) << swaps[0]->record().text();
    EXPECT_GT(swaps[0]->record().step, 0u);
}

}  // namespace
}  // namespace patchbay::service::testing::stepped_engine_test
