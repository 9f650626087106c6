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
    std::vector<uint64_t> none, some;
    EXPECT_TRUE(front_of(none).empty());
    EXPECT_TRUE(back_of(none).empty());
    some.reserve(100);
    some.assign(10, 7);
    const auto offset = [&](Memory what) { return what.data() - std::as_bytes(std::span(some)).data(); };
    EXPECT_EQ(offset(front_of(some)), 0);
    EXPECT_EQ(front_of(some).size(), 2 * kCacheLine + sizeof some[0]); // wherever in a line it begins
    EXPECT_EQ(offset(back_of(some)), 9 * 8);
    EXPECT_EQ(back_of(some).size(), 16u);
    some.resize(some.capacity());
    EXPECT_EQ(back_of(some).size(), 8u); // the next one comes elsewhere
    std::vector<Memory> all;
    list_fronts(all, none, some);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[1].data(), front_of(some).data());
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
