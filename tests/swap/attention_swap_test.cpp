// The attention of a running engine is exchanged: with equal pages at once, else everything is computed anew, and one
// that fails on probation leaves the engine to its predecessor.
#include <gmock/gmock.h>

#include "host/registry.hpp"
#include "swap/swap_fixture.hpp"

namespace patchbay::engine::attention_swap_test {
namespace {

using namespace testing;
using host::SwapState;
using ::testing::HasSubstr;

constexpr SwapSlot kAttention = SwapSlot::kAttention;

uint64_t recomputed(const Swapping& s) {
    uint64_t out = 0;
    for (const StepReport& r : s.steps) out += r.preemption.preempted_tokens;
    return out;
}

TEST(AttentionSwap, AtEveryBoundaryBetweenTwoBuildsLeavesEveryTextAndComputesNothingTwice) {
    config::EngineConfig c = busy_engine();
    c.swap.probation_steps = 1;
    Swapping s(c);
    s.add_requests();
    size_t n = 0;
    EXPECT_EQ(s.run([&] {
        s.swap(kAttention, {"paged", {}}, n++ % 2 == 0 ? other_builds() : swap_registry());
        EXPECT_TRUE(s.engine->audit());
    }),
              undisturbed());
    EXPECT_EQ(recomputed(s), 0u);
    size_t committed = 0;
    for (const host::SwapRecord& r : records(s.steps)) {
        committed += r.state == SwapState::kCommitted;
        EXPECT_TRUE(r.state == SwapState::kOnProbation || r.state == SwapState::kCommitted) << r.text();
    }
    EXPECT_GT(committed, 20u);
}

// Of pages in another layout nothing can be read.
TEST(AttentionSwap, ToOneWithOtherPagesComputesEverySequenceAnew) {
    for (const bool async : {false, true}) {
        config::EngineConfig c = busy_engine("fcfs", "greedy");
        if (async) c.proposer.reset(), c.engine.num_speculative_tokens = 0;
        c.swap.probation_steps = 2;
        Swapping s(c);
        s.add_requests();
        for (int i = 0; i < 6; ++i) s.step();
        const auto there = s.swap(kAttention, {"reference", {}});
        s.step();
        EXPECT_GT(recomputed(s), 0u);
        EXPECT_TRUE(s.engine->audit());
        for (int i = 0; i < 8; ++i) s.step();
        EXPECT_EQ(name_in(*s.engine, "attention"), "reference");
        const auto back = s.swap(kAttention, {"paged", {}});
        EXPECT_EQ(s.run([&] { EXPECT_TRUE(s.engine->audit()); }), greedy_undisturbed());
        EXPECT_EQ(there->record().state, SwapState::kCommitted) << there->record().text();
        EXPECT_EQ(back->record().state, SwapState::kCommitted) << back->record().text();
    }
}

TEST(AttentionSwap, NamesBlocksByTheLayoutInUse) {
    const auto engine = [](const char* attention) {
        config::EngineConfig c = busy_engine("fcfs", "greedy");
        c.attention.plugin = attention;
        c.engine.enable_prefix_caching = true;
        c.swap.probation_steps = 2;
        return c;
    };
    const auto blocks = [](Swapping& s) { return first_blocks(s, [&s] { s.add_requests(); }); };
    Swapping paged(engine("paged")), reference(engine("reference"));
    const BlockKeys of_paged = blocks(paged), of_reference = blocks(reference);
    ASSERT_FALSE(of_paged.empty());
    EXPECT_NE(of_paged, of_reference);
    paged.add_requests();
    for (int i = 0; i < 4; ++i) paged.step();
    for (const auto& [name, wanted] : {std::pair{"reference", of_reference}, std::pair{"paged", of_paged}}) {
        const auto swap = paged.swap(kAttention, {name, {}});
        paged.add_requests();
        paged.run();
        ASSERT_EQ(swap->record().state, SwapState::kCommitted) << swap->record().text();
        ASSERT_TRUE(paged.engine->reset_prefix_cache());
        EXPECT_EQ(blocks(paged), wanted) << name;
    }
}

class AttentionFault : public ::testing::TestWithParam<const char*> {};

TEST_P(AttentionFault, OnProbationIsRolledBackOnceAndNoRequestIsLost) {
    for (const int at : {1, 2, 4}) {
        config::EngineConfig c = busy_engine("fcfs", "greedy");
        c.swap = {.probation_steps = 6, .max_call_ms = 1};
        TickingClock clock(50'000);
        Swapping s(c, &clock);
        s.add_requests();
        for (int i = 0; i < 3; ++i) s.step();
        const auto swap = s.swap(
            kAttention, {"faulty", {{"fault", GetParam()}, {"at", std::to_string(at)}, {"seqs", "3"}}});
        EXPECT_EQ(s.run([&] { EXPECT_TRUE(s.engine->audit()); }), greedy_undisturbed()) << at;
        EXPECT_EQ(name_in(*s.engine, "attention"), "paged");
        EXPECT_EQ(swap->record().state, SwapState::kRolledBack) << swap->record().text();
        EXPECT_EQ(records(s.steps).size(), 2u);
    }
}
INSTANTIATE_TEST_SUITE_P(AttentionSwap, AttentionFault, ::testing::Values("throws_in_bind", "throws_in_plan", "slow"));

TEST(AttentionSwap, AStepThatIsComputedAnewIsNoStepOfAnothersProbation) {
    config::EngineConfig c = busy_engine();
    c.swap.probation_steps = 4;
    Swapping s(c);
    s.add_requests();
    for (int i = 0; i < 3; ++i) s.step();
    const auto attention = s.swap(kAttention, {"faulty", {{"fault", "throws_in_plan"}, {"at", "2"}, {"seqs", "3"}}});
    const auto scheduler = s.swap(SwapSlot::kScheduler, {"sjf", {}});
    s.run();
    ASSERT_EQ(attention->record().state, SwapState::kRolledBack) << attention->record().text();
    const host::SwapRecord r = scheduler->record();
    ASSERT_EQ(r.state, SwapState::kCommitted) << r.text();
    ASSERT_LE(r.step, attention->record().end_step);
    EXPECT_EQ(r.end_step, r.step + 4) << "4 steps, of which one does not count";
}

TEST(AttentionSwap, IsRefusedWhereThePagesThatAreThereDoNotFit) {
    config::EngineConfig c = busy_engine();
    c.engine.kv_cache_dtype = config::KvDType::kFp8;
    Swapping s(c);
    const auto swap = s.swap(kAttention, {"faulty", {}});
    EXPECT_EQ(swap->record().text(), "swap attention paged→faulty: refused in phase create: layer 0: attention "
                                     "'faulty': describe: kv dtype not in {f32, bf16}");
}

TEST(AttentionSwap, TogetherWithAllOtherSlots) {
    config::EngineConfig c = busy_engine();
    c.swap.probation_steps = 1;
    c.engine.enable_prefix_caching = true;
    c.kv_policy = config::PluginChoice{"lru", {}};
    Swapping s(c);
    s.add_requests();
    size_t n = 0;
    EXPECT_EQ(s.run([&] {
        const host::Registry& registry = n++ % 2 == 0 ? other_builds() : swap_registry();
        s.swap(SwapSlot::kScheduler, {"fcfs", {}}, registry);
        s.swap(SwapSlot::kSampler, {"standard", {}}, registry);
        s.swap(SwapSlot::kProposer, {"ngram", {}}, registry);
        s.swap(SwapSlot::kKvPolicy, {"lru", {}}, registry);
        s.swap(kAttention, {"paged", {}}, registry);
    }),
              undisturbed());
}

}  // namespace
}  // namespace patchbay::engine::attention_swap_test
