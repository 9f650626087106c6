#include "base/thread_pool.hpp"

#include "base/clock.hpp"
#include "ends.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <sched.h>
#include <thread>
#include <time.h>
#include <vector>

namespace patchbay::thread_pool_test {
namespace {

void run(ThreadPool& pool, uint32_t count, std::function<void(uint32_t)> f) {
    pool.run(count, [](void* arg, uint32_t i) { (*static_cast<std::function<void(uint32_t)>*>(arg))(i); }, &f);
}

// For what happens at once where the pool is sound, so that a test of one that is not fails and does not hang.
class Patience {
  public:
    bool left() const { return clock_.now_ns() < give_up_ns_; }

  private:
    const RealClock clock_;
    const uint64_t give_up_ns_ = clock_.now_ns() + 20'000'000'000;
};

// How many of `count` tasks saw all others begin before they returned. Each waits, so none is run after another.
uint32_t tasks_that_meet(ThreadPool& pool, uint32_t count, const Patience& patience) {
    std::atomic<uint32_t> inside{0}, met{0};
    run(pool, count, [&](uint32_t) {
        ++inside;
        while (inside < count && patience.left()) std::this_thread::yield();
        met += inside == count;
    });
    return met;
}

class ThreadPools : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPools, testing::Values(1, 2, 3, 8));

TEST_P(ThreadPools, RunEveryTaskOnce) {
    ThreadPool pool(GetParam());
    for (const uint32_t count : {0u, 1u, 2u, 5u, 1000u}) {
        std::vector<std::atomic<int>> calls(count);
        run(pool, count, [&](uint32_t i) { ++calls[i]; });
        for (uint32_t i = 0; i < count; ++i) EXPECT_EQ(calls[i], 1) << i << " of " << count;
    }
}

// Unlocked writes: a task of an earlier job that ran late would be a race, or would change a later job's sum.
TEST_P(ThreadPools, FinishAJobBeforeTheNextOverManyShortOnes) {
    ThreadPool pool(GetParam());
    std::vector<uint64_t> slots(7);
    for (uint64_t job = 0; job < 20000; ++job) {
        const auto count = static_cast<uint32_t>(job % 7 + 1);
        run(pool, count, [&](uint32_t i) { slots[i] = job * 8 + i; });
        for (uint32_t i = 0; i < count; ++i) ASSERT_EQ(slots[i], job * 8 + i);
    }
}

TEST_P(ThreadPools, WakeAfterHavingSleptBetweenJobs) {
    ThreadPool pool(GetParam());
    for (int job = 0; job < 5; ++job) {
        for (int i = 0; i < 2000; ++i) std::this_thread::yield(); // longer than a worker spins
        ASSERT_EQ(tasks_that_meet(pool, GetParam(), Patience()), GetParam()) << "a worker slept on in job " << job;
    }
}

TEST_P(ThreadPools, EndWithoutHavingRunAnything) {
    const uint32_t threads = GetParam();
    EXPECT_TRUE(ends([threads] {
        const ThreadPool pool(threads);
        EXPECT_EQ(pool.threads(), threads);
    }));
}

TEST(ThreadPool, WorksOnSeveralThreadsAtOnce) {
    ThreadPool pool(3);
    EXPECT_EQ(tasks_that_meet(pool, 3, Patience()), 3u)
        << "a task waited 20 s for the others, which a thread each would have begun at once";
}

TEST(ThreadPool, TakesNoThreadsAsOne) {
    ThreadPool pool(0);
    EXPECT_EQ(pool.threads(), 1u);
    const std::thread::id caller = std::this_thread::get_id();
    run(pool, 4, [&](uint32_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

#if defined(__linux__)
cpu_set_t cores_of_this_thread() {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    EXPECT_EQ(sched_getaffinity(0, sizeof cores, &cores), 0);
    return cores;
}

// The cores of each of three threads, the caller's first. Empty: one thread had more than one of three tasks.
std::vector<cpu_set_t> cores_of_three(ThreadPool& pool) {
    std::vector<cpu_set_t> cores(1);
    std::mutex mutex;
    std::atomic<int> inside{0};
    const Patience patience;
    const std::thread::id caller = std::this_thread::get_id();
    run(pool, 3, [&](uint32_t) {
        ++inside;
        while (inside < 3 && patience.left()) std::this_thread::yield(); // so that each thread has one task
        const std::lock_guard lock(mutex);
        if (std::this_thread::get_id() == caller) cores[0] = cores_of_this_thread();
        else cores.push_back(cores_of_this_thread());
    });
    if (!patience.left()) cores.clear();
    return cores;
}

TEST(ThreadPool, KeepsEachThreadButTheCallersOnOneCoreWherePinned) {
    const cpu_set_t before = cores_of_this_thread();
    ThreadPool pool(3, Pinning::kCores);
    const std::vector<cpu_set_t> cores = cores_of_three(pool);
    ASSERT_EQ(cores.size(), 3u);
    EXPECT_TRUE(CPU_EQUAL(&cores[0], &before));
    EXPECT_EQ(CPU_COUNT(&cores[1]), 1);
    EXPECT_EQ(CPU_COUNT(&cores[2]), 1);
    if (CPU_COUNT(&before) > 1) {
        EXPECT_FALSE(CPU_EQUAL(&cores[1], &cores[2]));
    }
}

TEST(ThreadPool, LetsItsThreadsMoveWhereNotPinned) {
    const cpu_set_t before = cores_of_this_thread();
    ThreadPool pool(3);
    const std::vector<cpu_set_t> all = cores_of_three(pool);
    ASSERT_EQ(all.size(), 3u);
    for (const cpu_set_t& cores : all) EXPECT_TRUE(CPU_EQUAL(&cores, &before));
}

// What keeps several engines of one process out of each other's way.
TEST(ThreadPool, UsesNoTimeOfACoreOnceItHasWaitedAWhile) {
    ThreadPool pool(3);
    run(pool, 3, [](uint32_t) {});
    const auto used = [] { // by all threads of this process
        timespec t{};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return t.tv_sec * 1000000000ll + t.tv_nsec;
    };
    // Sleeping workers add nothing to what this thread uses; spinning ones would add for ever.
    const Patience patience;
    bool asleep = false;
    while (!asleep && patience.left()) {
        timespec own_start{}, own_end{};
        const auto before = used();
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own_start);
        for (int i = 0; i < 2000; ++i) std::this_thread::yield();
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own_end);
        const auto own = (own_end.tv_sec - own_start.tv_sec) * 1000000000ll + own_end.tv_nsec - own_start.tv_nsec;
        asleep = used() - before < own + own / 10 + 50000;
    }
    EXPECT_TRUE(asleep) << "for 20 s other threads have used a core";
}
#endif

TEST(ThreadPool, HandsOutTheSameThreadsAsAService) {
    ThreadPool pool(2);
    const pb_pool& service = pool.service();
    EXPECT_EQ(service.struct_size, sizeof(pb_pool));
    EXPECT_EQ(service.threads, 2u);
    std::atomic<uint32_t> sum{0};
    service.run(service.ctx, 10, [](void* arg, uint32_t i) { *static_cast<std::atomic<uint32_t>*>(arg) += i; }, &sum);
    EXPECT_EQ(sum, 45u);
}

}  // namespace
}  // namespace patchbay::thread_pool_test
