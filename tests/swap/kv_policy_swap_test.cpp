// The kv_policy of a running engine is exchanged: it decides which prefixes are still there, so no text changes.
#include <gmock/gmock.h>

#include "swap/swap_fixture.hpp"

namespace patchbay::engine::kv_policy_swap_test {
namespace {

using namespace testing;
using host::SwapState;
using ::testing::HasSubstr;

constexpr SwapSlot kKvPolicy = SwapSlot::kKvPolicy;
constexpr uint32_t kFewBlocks = 29; // so that pages are evicted

config::EngineConfig caching_engine() {
    config::EngineConfig c = busy_engine("fcfs", "greedy");
    c.engine.num_blocks = kFewBlocks;
    c.engine.enable_prefix_caching = true;
    c.kv_policy = config::PluginChoice{"lru", {}};
    return c;
}

uint64_t evictions(const Swapping& s) {
    uint64_t out = 0;
    for (const StepReport& r : s.steps) out += r.kv.chosen_evictions;
    return out;
}

TEST(KvPolicySwap, AtEveryBoundaryAmongPluginsAndBuildsLeavesEveryTextAsItIs) {
    config::EngineConfig c = caching_engine();
    c.swap.probation_steps = 1;
    Swapping s(c);
    s.add_requests();
    s.add_requests(); // the same prompts again
    size_t n = 0;
    const char* const kNames[] = {"lru", "lfu", "prefix_tree"};
    s.run([&] {
        const char* const name = kNames[n++ % 3];
        const bool other = n % 2 == 0 && std::string(name) != "prefix_tree";
        s.swap(kKvPolicy, {name, {}}, other ? other_builds() : swap_registry());
    });
    Swapping alone(caching_engine());
    alone.add_requests();
    alone.add_requests();
    EXPECT_EQ(s.texts, alone.run());
    EXPECT_GT(evictions(s), 10u) << "it was not put to the test";
    size_t committed = 0;
    for (const StepReport& r : s.steps) EXPECT_EQ(r.calls.kv_policy_faults, 0u);
    for (const host::SwapRecord& r : records(s.steps)) committed += r.state == SwapState::kCommitted;
    EXPECT_GT(committed, 10u);
    EXPECT_TRUE(s.engine->audit());
}

class KvPolicyFault : public ::testing::TestWithParam<const char*> {};

TEST_P(KvPolicyFault, InAnyCallOfProbationBringsThePredecessorBackAndNoPageIsLost) {
    const bool learns = std::string(GetParam()) == "throws_in_adopt"; // before it has the slot
    for (const int at : {1, 2, 3}) {
        if (learns && at > 1) break;
        config::EngineConfig c = caching_engine();
        c.swap = {.probation_steps = 1000, .max_call_ms = 1};
        TickingClock clock(50'000);
        Swapping s(c, &clock);
        s.add_requests();
        s.add_requests();
        for (int i = 0; i < 4; ++i) s.step();
        const auto swap = s.swap(kKvPolicy, {"faulty", {{"fault", GetParam()},
                                                        {"at", std::to_string(at)},
                                                        {"blocks", std::to_string(kFewBlocks)}}});
        s.run([&] { ASSERT_TRUE(s.engine->audit()); });
        const host::SwapRecord r = swap->record();
        EXPECT_EQ(r.state, learns ? SwapState::kRefused : SwapState::kRolledBack) << at << ": " << r.text();
        EXPECT_EQ(r.phase == "adopt", learns) << r.text();
        EXPECT_EQ(name_in(*s.engine, "kv_policy"), "lru");
        for (const StepReport& step : s.steps) EXPECT_EQ(step.calls.kv_policy_faults, 0u);
    }
}
INSTANTIATE_TEST_SUITE_P(KvPolicySwap, KvPolicyFault,
                         ::testing::Values("throws_in_adopt", "throws_in_update", "throws_in_choose", "names_nothing",
                                           "names_strangers", "slow"));

TEST(KvPolicySwap, TakesItsSlotThoughNothingRunsAnyMore) {
    config::EngineConfig c = caching_engine();
    c.engine.num_blocks = 20'000; // more than a boundary looks at
    Swapping s(c);
    s.add_requests();
    std::shared_ptr<host::Swap> swap;
    size_t idle_boundaries = 0;
    while (s.engine->has_unfinished()) {
        if (!swap && s.endings.size() == 7) swap = s.swap(kKvPolicy, {"lfu", {}});
        ASSERT_LT(s.steps.size(), 2000u);
        idle_boundaries += s.endings.size() == 8 && swap->record().state == SwapState::kPosted;
        s.step();
    }
    ASSERT_TRUE(swap);
    EXPECT_GT(idle_boundaries, 0u) << "it was not put to the test";
    EXPECT_EQ(swap->record().state, SwapState::kOnProbation) << swap->record().text();
    EXPECT_EQ(name_in(*s.engine, "kv_policy"), "lfu");
}

TEST(KvPolicySwap, IsRefusedWhereTheCacheKeepsItsOwnOrder) {
    Swapping s(busy_engine());
    const auto swap = s.swap(kKvPolicy, {"lfu", {}});
    EXPECT_THAT(swap->record().text(), HasSubstr("refused in phase find: the engine was started without one"));
}

}  // namespace
}  // namespace patchbay::engine::kv_policy_swap_test
