// Swaps by the thousand, and from other threads than the one that steps.
#include <filesystem>
#include <fstream>
#include <thread>

#include "host/registry.hpp"
#include "swap/swap_fixture.hpp"

namespace patchbay::engine::many_swaps_test {
namespace {

using namespace testing;
using host::SwapState;

struct Held { // what a process may leak beside memory
    size_t mappings, descriptors, threads;
};

size_t entries(const char* folder) {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

size_t mapped_plugins() {
    std::ifstream maps("/proc/self/maps");
    size_t count = 0;
    for (std::string line; std::getline(maps, line);) count += line.ends_with(".so");
    return count;
}

Held held() { return {mapped_plugins(), entries("/proc/self/fd"), entries("/proc/self/task")}; }

TEST(ManySwaps, LeaveNoMappingDescriptorOrThread) {
    config::EngineConfig c = busy_engine();
    c.swap.probation_steps = 1;
    Swapping s(c);
    const config::PluginChoice schedulers[] = {{"counting_1", {}}, {"sjf", {}}, {"counting_2", {}}, {"fcfs", {}}};
    size_t swaps = 0, committed = 0;
    const auto swap_some = [&](size_t until) {
        while (swaps < until) {
            if (!s.engine->has_unfinished()) s.add_requests();
            const host::Registry& registry = swaps % 2 == 0 ? other_builds() : swap_registry();
            s.swap(SwapSlot::kScheduler, schedulers[swaps % 4], registry.find("scheduler", schedulers[swaps % 4].plugin)
                                                                    ? registry
                                                                    : swap_registry());
            s.swap(SwapSlot::kSampler, {"standard", {}}, registry);
            swaps += 2;
            for (const host::SwapRecord& r : s.step().swaps) {
                committed += r.state == SwapState::kCommitted;
                EXPECT_TRUE(r.state == SwapState::kCommitted || r.state == SwapState::kOnProbation) << r.text();
            }
        }
    };
    swap_some(100); // what grows once has grown
    const Held before = held();
    swap_some(1300);
    const Held after = held();
    EXPECT_GT(committed, 1000u);
    EXPECT_LE(after.mappings, before.mappings + 10); // those of a component or two more
    EXPECT_LE(after.descriptors, before.descriptors);
    EXPECT_EQ(after.threads, before.threads);
}

TEST(ManySwaps, ArePostedByOtherThreadsWhileStepsRun) {
    config::EngineConfig c = busy_engine();
    c.engine.threads = 2;
    c.swap.probation_steps = 2;
    Swapping s(c);
    // What is probed and read once, beforehand: the threads below are about swaps.
    std::atomic<size_t> at_work = 2;
    std::atomic<size_t> committed = 0, refused = 0;
    const auto ask = [&](SwapSlot slot, const config::PluginChoice& one, const config::PluginChoice& other) {
        for (size_t i = 0; i < 20; ++i) {
            const auto swap = s.swap(slot, i % 2 == 0 ? one : other);
            const host::SwapRecord r = swap->wait();
            EXPECT_TRUE(r.state == SwapState::kCommitted || r.state == SwapState::kRefused) << r.text();
            committed += r.state == SwapState::kCommitted;
            refused += r.state == SwapState::kRefused;
        }
        at_work -= 1;
    };
    std::thread first(ask, SwapSlot::kScheduler, config::PluginChoice{"counting_1", {}},
                      config::PluginChoice{"counting_3", {}}); // which reads no other's state
    std::thread second(ask, SwapSlot::kSampler, config::PluginChoice{"greedy", {}},
                       config::PluginChoice{"standard", {}});
    size_t rounds = 0;
    while (at_work > 0) {
        s.add_requests();
        s.run();
        rounds += 1;
    }
    first.join();
    second.join();
    EXPECT_EQ(committed + refused, 40u);
    EXPECT_GE(committed, 21u); // all of the sampler's, and the scheduler's first
    EXPECT_GE(refused, 10u);
    EXPECT_EQ(s.endings.size(), rounds * 8); // nothing lost, nothing doubled
}

}  // namespace
}  // namespace patchbay::engine::many_swaps_test
