#include "base/call_watch.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace patchbay::call_watch_test {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(CallWatch, NamesTheCallThatDoesNotReturn) {
    std::promise<std::string> said;
    const CallWatch watch([] { return kMs; }, [&](const std::string& what) { said.set_value(what); });
    const PluginCall call("scheduler 'x'", "plan");
    current_call().step = 7;
    EXPECT_EQ(said.get_future().get(), "scheduler 'x': plan: did not return within 1 ms in step 7");
    current_call().step = 0;
}

TEST(CallWatch, SaysNothingOutsideOfCallsNorWithoutALimit) {
    std::atomic<int> looks = 0, overdue = 0;
    std::atomic<uint64_t> limit = 1;
    {
        const CallWatch watch(
            [&] {
                looks += 1;
                return limit.load();
            },
            [&](const std::string&) { overdue += 1; });
        while (looks < 4 && overdue == 0) std::this_thread::yield();
        limit = 0;
        const PluginCall call("scheduler 'x'", "plan");
        for (const int from = looks; looks < from + 4 && overdue == 0;) std::this_thread::yield();
    }
    EXPECT_EQ(overdue, 0);
}

TEST(CallWatch, CountsFromTheBeginningOfEachStep) {
    std::atomic<int> overdue = 0, looks = 0;
    {
        CallRecord& record = current_call();
        const PluginCall call("scheduler 'x'", "plan");
        const CallWatch watch(
            [&] {
                record.step += 1; // never the same in two looks
                looks += 1;
                return kMs;
            },
            [&](const std::string&) { overdue += 1; });
        while (looks < 6 && overdue == 0) std::this_thread::yield(); // the watch ends with what is overdue
    }
    current_call().step = 0;
    EXPECT_EQ(overdue, 0);
}

// 100 ms from look to look, but for once when the process was stopped.
class StoppedOnce final : public Clock {
  public:
    uint64_t now_ns() const override { return (looks_ += 1) * 100 * kMs + (looks_ >= 3 ? 7'000 * kMs : 0); }
    void wait_until_ns(uint64_t) override {}
    int looks() const { return looks_; }

  private:
    mutable std::atomic<int> looks_ = 0;
};

TEST(CallWatch, DoesNotCountTheTimeInWhichTheProcessWasStopped) {
    const StoppedOnce clock;
    std::promise<int> looks;
    const PluginCall call("scheduler 'x'", "plan");
    const auto overdue = [&](const std::string&) { looks.set_value(clock.looks()); };
    const CallWatch watch([] { return 500 * kMs; }, overdue, &clock);
    EXPECT_EQ(looks.get_future().get(), 8) << "five after the third";
}

}  // namespace
}  // namespace patchbay::call_watch_test
