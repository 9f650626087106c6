#include "base/step_memory.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "base/clock.hpp"
#include "base/thread_pool.hpp"

namespace patchbay {
namespace {

#if defined(__ELF__)
TEST(StepMemory, CodeOfStepsHasBoundsThatTheLinkerTells) {
    EXPECT_GT(RealClock().now_ns(), 0u); // whose code is part of it
    EXPECT_GT(step_text().size(), 0u);
}
#endif

TEST(StepMemory, OfArraysIsWhereFewElementsLieAndWhereTheNextOneComes) {
    std::vector<Memory> all;
    std::vector<uint64_t> none, some;
    some.reserve(100);
    some.assign(10, 7);
    list_fronts(all, none, some);
    list_back(all, none);
    list_back(all, some);
    ASSERT_EQ(all.size(), 4u);
    const auto* const first = std::as_bytes(std::span(some)).data();
    EXPECT_TRUE(all[0].empty());
    EXPECT_EQ(all[1].data(), first);
    EXPECT_EQ(all[1].size(), 2 * kCacheLine);
    EXPECT_TRUE(all[2].empty());
    EXPECT_EQ(all[3].data(), first + 9 * sizeof some[0]);
    EXPECT_EQ(all[3].size(), 2 * sizeof some[0]);
    some.resize(some.capacity());
    list_back(all, some);
    EXPECT_EQ(all[4].size(), sizeof some[0]) << "the next one comes elsewhere";
}

TEST(StepMemory, IsAskedForBehindJobsWhateverLiesThere) {
    const std::byte one{}, many[10'000]{};
    ThreadPool pool(2);
    pool.ask_while_waiting({Memory(), memory_of(one), memory_of(many), {&one, size_t{1} << 20}, step_text()});
    std::atomic<uint64_t> sum = 0;
    for (int job = 0; job < 1000; ++job)
        pool.run(4, [](void* arg, uint32_t i) { *static_cast<std::atomic<uint64_t>*>(arg) += i; }, &sum);
    EXPECT_EQ(sum, 6000u);
}

}  // namespace
}  // namespace patchbay
