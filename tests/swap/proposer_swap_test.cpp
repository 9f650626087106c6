// The proposer of a running engine is exchanged: drafts only save time, so no text changes, whatever it does.
#include <gmock/gmock.h>

#include <filesystem>

#include "paths.hpp"
#include "swap/swap_fixture.hpp"

namespace patchbay::engine::proposer_swap_test {
namespace {

using namespace testing;
using host::SwapState;
using ::testing::HasSubstr;

constexpr SwapSlot kProposer = SwapSlot::kProposer;

TEST(ProposerSwap, AtEveryBoundaryAmongPluginsAndBuildsLeavesEveryTextAsItIs) {
    config::EngineConfig c = busy_engine();
    c.swap.probation_steps = 1;
    Swapping s(c);
    s.add_requests();
    size_t n = 0;
    const auto next = [&] {
        const config::PluginChoice choice{n % 4 < 2 ? "ngram" : "suffix", {}};
        s.swap(kProposer, choice, n++ % 2 == 0 ? other_builds() : swap_registry());
    };
    EXPECT_EQ(s.run(next), undisturbed());
    size_t committed = 0;
    for (const host::SwapRecord& r : records(s.steps)) {
        committed += r.state == SwapState::kCommitted;
        EXPECT_TRUE(r.state == SwapState::kOnProbation || r.state == SwapState::kCommitted) << r.text();
    }
    EXPECT_GT(committed, 10u);
}

TEST(ProposerSwap, TheOneThatComesInMakesTheDrafts) {
    config::EngineConfig c = busy_engine("fcfs", "greedy");
    c.swap.probation_steps = 2;
    Swapping s(c);
    s.add_requests();
    for (int i = 0; i < 4; ++i) s.step();
    const auto swap = s.swap(kProposer, {"last_token", {}});
    const size_t before = s.steps.size();
    EXPECT_EQ(s.run(), greedy_undisturbed());
    EXPECT_EQ(swap->record().state, SwapState::kCommitted);
    EXPECT_EQ(name_in(*s.engine, "proposer"), "last_token");
    uint64_t drafted = 0;
    for (size_t i = before + 1; i < s.steps.size(); ++i) drafted += s.steps[i].drafts.drafted_tokens;
    EXPECT_GT(drafted, 0u) << "the step after the swap verifies drafts of its predecessor";
}

class ProposerFault : public ::testing::TestWithParam<const char*> {};

TEST_P(ProposerFault, InAnyCallOfProbationBringsThePredecessorBackOnce) {
    for (int at = 1; at <= 4; ++at) {
        config::EngineConfig c = busy_engine("fcfs", "greedy");
        c.swap = {.probation_steps = 4, .max_call_ms = 1};
        TickingClock clock(50'000);
        Swapping s(c, &clock);
        s.add_requests();
        for (int i = 0; i < 2; ++i) s.step();
        s.swap(kProposer, {"faulty", {{"fault", GetParam()}, {"at", std::to_string(at)}, {"room", "3"}}});
        EXPECT_EQ(s.run(), greedy_undisturbed()) << at;
        EXPECT_EQ(name_in(*s.engine, "proposer"), "ngram");
        const auto all = records(s.steps);
        ASSERT_EQ(all.size(), 2u) << at;
        EXPECT_EQ(all[1].state, SwapState::kRolledBack) << all[1].text();
        EXPECT_TRUE(all[1].after_calls) << "its predecessor made none in that step";
        for (const StepReport& r : s.steps) EXPECT_EQ(r.calls.proposer_faults, 0u);
    }
}
INSTANTIATE_TEST_SUITE_P(ProposerSwap, ProposerFault, ::testing::Values("throws", "slow"));

TEST(ProposerSwap, IsRefusedWhereTheEngineHasNoRoomForDrafts) {
    Swapping s(tiny_model());
    const auto swap = s.swap(kProposer, {"ngram", {}});
    EXPECT_THAT(swap->record().text(),
                HasSubstr("swap proposer none→ngram: refused in phase find: the engine was started without one"));
}

TEST(ProposerSwap, ForNoneSaysHowToDoWithout) {
    Swapping s(busy_engine());
    EXPECT_THAT(s.swap(kProposer, {"none", {}})->record().text(),
                HasSubstr("refused in phase find: the proposer can only be exchanged for another one while the engine "
                          "runs, not taken out (start it again without 'proposer:', or with speculative.mode: "));
}

TEST(ProposerSwap, IsRefusedToOneThatDraftsWithAModelThatIsNotThere) {
    Swapping s(busy_engine());
    const auto swap = s.swap(kProposer, {"draft_model", {{"model", kSourceDir + std::string("/models/demo-draft")}}});
    EXPECT_EQ(swap->record().state, SwapState::kRefused);
    EXPECT_THAT(swap->record().text(), HasSubstr("the engine was started without a draft model"));
}

// The newcomer goes on with the draft model that is loaded, and with the KV that it has computed.
TEST(ProposerSwap, BetweenProposersOfOneDraftModelKeepsItsKv) {
    const std::string models = kSourceDir + std::string("/models/");
    const config::PluginChoice drafting{"draft_model", {{"model", models + "demo-draft"}}};
    config::EngineConfig c = tiny_model();
    c.model = {};
    c.model.path = models + "demo-target";
    c.engine.num_speculative_tokens = 3;
    c.swap.probation_steps = 1;
    c.proposer = drafting;
    const auto accepted = [](const Swapping& s) {
        uint64_t out = 0;
        for (const StepReport& r : s.steps) out += r.drafts.accepted_tokens;
        return out;
    };
    Swapping alone(c), s(c);
    alone.add_requests();
    s.add_requests();
    const config::PluginChoice from_here{"draft_model",
                                         {{"model", std::filesystem::relative(models + "demo-draft").string()}}};
    const auto exchange = [&] {
        const auto swap = s.swap(kProposer, from_here);
        EXPECT_NE(swap->record().state, SwapState::kRefused) << swap->record().text();
    };
    EXPECT_EQ(s.run(exchange), alone.run());
    EXPECT_EQ(accepted(s), accepted(alone)) << "drafts are as good as without swaps";
    EXPECT_GT(accepted(s), 0u);
    const auto other = s.swap(kProposer, {"ngram", {}});
    EXPECT_THAT(other->record().text(), HasSubstr("refused in phase create: 'ngram' drafts without a model"));
}

}  // namespace
}  // namespace patchbay::engine::proposer_swap_test
