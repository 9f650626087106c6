// The sampler of a running engine is exchanged: with the same algorithm every text stays, and one that fails on
// probation leaves its step, logits included, to its predecessor.
#include "swap/swap_fixture.hpp"

#include "host/registry.hpp"

namespace patchbay::engine::sampler_swap_test {
namespace {

using namespace testing;
using host::SwapState;

constexpr SwapSlot kSampler = SwapSlot::kSampler;

TEST(SamplerSwap, AtEveryBoundaryBetweenTwoBuildsLeavesEveryTextAsItIs) {
    config::EngineConfig c = busy_engine();
    c.swap.probation_steps = 1;
    Swapping s(c);
    s.add_requests();
    size_t n = 0;
    EXPECT_EQ(s.run([&] { s.swap(kSampler, {"standard", {}}, n++ % 2 == 0 ? other_builds() : swap_registry()); }),
              undisturbed());
    size_t exchanged = 0;
    for (const host::SwapRecord& r : records(s.steps)) {
        exchanged += r.state == SwapState::kOnProbation;
        EXPECT_TRUE(r.state == SwapState::kOnProbation || r.state == SwapState::kCommitted) << r.text();
        EXPECT_NE(r.from.sha256, r.to.sha256);
    }
    EXPECT_GT(exchanged, 20u);
}

TEST(SamplerSwap, TogetherWithTheSchedulersAtEveryBoundary) {
    config::EngineConfig c = busy_engine();
    c.swap.probation_steps = 1;
    Swapping s(c);
    s.add_requests();
    size_t n = 0;
    EXPECT_EQ(s.run([&] {
        const host::Registry& registry = n++ % 2 == 0 ? other_builds() : swap_registry();
        s.swap(kSampler, {"standard", {}}, registry);
        s.swap(SwapSlot::kScheduler, {"static", {}}, registry);
    }),
              undisturbed());
    size_t samplers = 0, schedulers = 0;
    for (const host::SwapRecord& r : records(s.steps)) {
        EXPECT_TRUE(r.state == SwapState::kOnProbation || r.state == SwapState::kCommitted) << r.text();
        if (r.state == SwapState::kCommitted) (r.kind == "sampler" ? samplers : schedulers) += 1;
    }
    EXPECT_GT(samplers, 20u);
    EXPECT_GT(schedulers, 20u);
}

TEST(SamplerSwap, TheOneThatComesInSamplesTheVeryNextStep) {
    Swapping s(busy_engine("fcfs", "greedy"));
    s.add_requests();
    s.step();
    const auto swap = s.swap(kSampler, {"remembers", {}});
    const auto rows = s.step().work.scheduled_seqs;
    EXPECT_GT(rows, 0u);
    EXPECT_GT(s.gauges.at("remembers/rows"), 0);
    EXPECT_EQ(name_in(*s.engine, "sampler"), "remembers");
    EXPECT_EQ(s.run(), greedy_undisturbed());
    EXPECT_EQ(swap->record().state, SwapState::kCommitted);
}

TEST(SamplerSwap, CarriesState) {
    Swapping s(busy_engine("fcfs", "remembers"));
    s.add_requests();
    for (int i = 0; i < 6; ++i) s.step();
    const double before = s.gauges.at("remembers/rows");
    ASSERT_GT(before, 2);
    s.swap(kSampler, {"remembers", {}});
    s.step();
    EXPECT_GT(s.gauges.at("remembers/rows"), before);
    EXPECT_EQ(s.run(), greedy_undisturbed());
}

TEST(SamplerSwap, IsRefusedWhereStateWouldBeLost) {
    Swapping s(busy_engine("fcfs", "remembers"));
    s.add_requests();
    s.step();
    const auto swap = s.swap(kSampler, {"greedy", {}});
    EXPECT_EQ(s.run(), greedy_undisturbed());
    EXPECT_EQ(swap->record().text(),
              "swap sampler remembers→greedy: refused in phase load: cannot read state 'remembers/1'");
    EXPECT_EQ(name_in(*s.engine, "sampler"), "remembers");
}

TEST(SamplerSwap, IsRefusedWhereNoneIsCalled) {
    config::EngineConfig c = tiny_model();
    c.device = {"sim", {{"matmul_f32", "1e9"}, {"matmul_bf16", "1e9"}, {"memory_read", "1e9"},
                        {"memory_bytes", "100000000"}}};
    VirtualClock clock;
    const auto made = Engine::create(c, swap_registry(), clock);
    ASSERT_TRUE(made) << made.error();
    const auto swap = (*made)->control().swap({kSampler, {"greedy", {}}, swap_registry(), prober()});
    EXPECT_EQ(swap->record().text(), "swap sampler standard→greedy: refused in phase find: no sampler is called where "
                                     "the device computes nothing");
}

class SamplerFault : public ::testing::TestWithParam<const char*> {};

TEST_P(SamplerFault, InAnyCallOfProbationIsRedoneByThePredecessorAndRolledBackOnce) {
    const Texts expected = greedy_undisturbed();
    for (int at = 1; at <= 4; ++at) {
        config::EngineConfig c = busy_engine("fcfs", "greedy");
        c.swap.probation_steps = 4;
        Swapping s(c);
        s.add_requests();
        for (int i = 0; i < 2; ++i) s.step();
        const config::PluginChoice faulty{
            "faulty", {{"fault", GetParam()}, {"at", std::to_string(at)}, {"vocab", std::to_string(kVocab)}}};
        s.swap(kSampler, faulty);
        EXPECT_EQ(s.run(), expected) << at; // though the faulty one had written into the logits
        EXPECT_EQ(name_in(*s.engine, "sampler"), "greedy");
        const auto all = records(s.steps);
        ASSERT_EQ(all.size(), 2u) << at;
        EXPECT_TRUE(all[1].text().starts_with("swap sampler greedy→faulty: rolled back in phase sample: "))
            << all[1].text();
        for (const StepReport& r : s.steps) EXPECT_EQ(r.calls.sampler_faults, 0u);
    }
}
INSTANTIATE_TEST_SUITE_P(SamplerSwap, SamplerFault, ::testing::Values("throws", "out_of_range", "negative"));

TEST(SamplerSwap, OneThatIsSlowIsGoneBeforeTheNextStep) {
    config::EngineConfig c = busy_engine("fcfs", "greedy");
    c.swap = {.probation_steps = 8, .max_call_ms = 1};
    TickingClock clock(50'000);
    Swapping s(c, &clock);
    s.add_requests();
    const auto swap = s.swap(kSampler, {"faulty", {{"fault", "slow"}, {"vocab", std::to_string(kVocab)}}});
    EXPECT_EQ(s.run(), greedy_undisturbed());
    EXPECT_EQ(swap->record().text(),
              "swap sampler greedy→faulty: rolled back in phase time: sample took 5 ms, more than max_call_ms of 1");
}

TEST(SamplerSwap, AnotherAlgorithmMakesOtherTextsFromThenOn) {
    Swapping s(busy_engine());
    s.add_requests();
    for (int i = 0; i < 5; ++i) s.step();
    const Texts before = s.texts;
    s.swap(kSampler, {"greedy", {}});
    s.run();
    EXPECT_NE(s.texts, undisturbed());
    for (const auto& [id, text] : before)
        EXPECT_TRUE(std::equal(text.begin(), text.end(), s.texts.at(id).begin())) << id; // what was said stays said
}

}  // namespace
}  // namespace patchbay::engine::sampler_swap_test
