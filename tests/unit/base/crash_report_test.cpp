// A process that a plugin ends says in which call that was. Each case is a process of its own.
#include "base/crash_report.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "base/plugin_call.hpp"
#include "base/thread_pool.hpp"
#include "base/thread_stack.hpp"

namespace patchbay::crash_report_test {
namespace {

constexpr const char* kScheduler = "scheduler 'mine'";

void in_step(uint64_t step) {
    report_crashes();
    current_call().step = step;
}

TEST(PluginCall, IsThatOfTheInnermostCallUntilItReturns) {
    current_call() = {};
    {
        const PluginCall outer("model 'llama'", "forward");
        current_call().step = 7;
        {
            const PluginCall inner("attention 'paged'", "run");
            EXPECT_STREQ(current_call().component, "attention 'paged'");
            EXPECT_EQ(current_call().step, 7u);
        }
        EXPECT_STREQ(current_call().component, "model 'llama'");
        EXPECT_EQ(current_call().call, "forward");
    }
    EXPECT_EQ(current_call().component, nullptr);
}

TEST(PluginCall, IsThatOfWhoRunsATaskOnAllThreadsOfThePool) {
    ThreadPool pool(4);
    const PluginCall noted("device 'cpu'", "matmul");
    struct Seen {
        std::atomic<uint32_t> right{0}, all{0};
    } seen;
    for (int i = 0; i < 50; ++i)
        pool.run(64, [](void* arg, uint32_t) {
            auto& s = *static_cast<Seen*>(arg);
            s.all += 1;
            s.right += current_call().component && current_call().call == "matmul";
        }, &seen);
    EXPECT_EQ(seen.all, 50u * 64);
    EXPECT_EQ(seen.right, seen.all);
}

TEST(CrashReport, AnExitInACallFailsTheProcessAndNamesIt) {
    EXPECT_EXIT(
        {
            in_step(12);
            const PluginCall noted(kScheduler, "plan");
            std::exit(0);
        },
        ::testing::ExitedWithCode(1), "^patchbay: scheduler 'mine': plan: called exit\\(0\\) in step 12\n$");
    EXPECT_EXIT(
        {
            in_step(0);
            const PluginCall noted(kScheduler, "create");
            std::quick_exit(0);
        },
        ::testing::ExitedWithCode(1), "^patchbay: scheduler 'mine': create: called exit\\(0\\)\n$");
}

TEST(CrashReport, AnExitOutsideOfCallsFailsTheProcessUntilItsWorkIsDone) {
    EXPECT_EXIT(
        {
            in_step(3);
            std::exit(0);
        },
        ::testing::ExitedWithCode(1), "^patchbay: called exit\\(0\\) outside of any plugin's call, after step 3\n$");
    EXPECT_EXIT(
        {
            in_step(3);
            expect_exit();
            std::exit(0);
        },
        ::testing::ExitedWithCode(0), "^$");
}

// What a library registers when it is loaded would run before the report, and might crash or print.
TEST(CrashReport, ComesBeforeWhatALibraryRegistered) {
    EXPECT_EXIT(
        {
            in_step(1);
            std::atexit([] { _Exit(0); });
            report_exit_first();
            const PluginCall noted(kScheduler, "plan");
            std::exit(0);
        },
        ::testing::ExitedWithCode(1), "called exit\\(0\\) in step 1\n$");
}

TEST(CrashReport, AFatalSignalNamesTheCallAndEndsTheProcessAsEver) {
    const std::pair<int, const char*> signals[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"},
                                                   {SIGILL, "SIGILL"},   {SIGABRT, "SIGABRT"}};
    for (const auto& [signal, name] : signals)
        EXPECT_EXIT(
            {
                for (const auto& [one, its_name] : signals) std::signal(one, SIG_DFL); // a sanitizer's is another
                in_step(4);
                const PluginCall noted("device 'mine'", "to_host");
                raise(signal);
            },
            ::testing::KilledBySignal(signal),
            "^patchbay: device 'mine': to_host: " + std::string(name) + " \\(.*\\) in step 4\n");
}

volatile uint64_t deepest = 0;

uint64_t descend(uint64_t depth) { // without end; in large steps: ThreadSanitizer lists 65,536
    volatile char room[1024];
    room[depth % sizeof room] = 1;
    deepest = depth;
    return depth == 0 ? 0 : descend(depth + 1) + deepest + room[depth % sizeof room];
}

TEST(CrashReport, AFullStackIsReportedToo) {
    EXPECT_EXIT(
        {
            std::signal(SIGSEGV, SIG_DFL);
            in_step(4);
            run_with_stack([] {
                const PluginCall noted("device 'mine'", "to_host");
                std::exit(descend(1) > 0);
            });
        },
        ::testing::KilledBySignal(SIGSEGV), "^patchbay: device 'mine': to_host: SIGSEGV");
}

}  // namespace
}  // namespace patchbay::crash_report_test
