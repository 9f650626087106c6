// Sampling stages that look at what came before, where sequences are preempted, drafted for and sampled by another; and
// samplers that do not have them.
#include <gmock/gmock.h>

#include "engine/engine_control.hpp"
#include "host/probe.hpp"
#include "host/prober.hpp"
#include "unit/engine/engine_fixture.hpp"
#include "paths.hpp"

namespace patchbay::engine::sampling_stages_test {
namespace {

using namespace testing;
using ::testing::HasSubstr;

host::Prober& prober() {
    static host::Prober one(host::ProbeOptions{.program = std::string(kBuildDir) + "/bin/patchbay-probe"});
    return one;
}

SamplingParams mirostat(uint64_t seed, uint32_t max_tokens) {
    SamplingParams p = seeded(seed, max_tokens);
    p.top_p = 1;
    p.mirostat = 2;
    p.mirostat_tau = 4;
    p.mirostat_eta = 0.3f;
    return p;
}

SamplingParams dry(uint64_t seed, uint32_t max_tokens) {
    SamplingParams p = seeded(seed, max_tokens);
    p.temperature = 0.2f; // so that it repeats itself
    p.dry_multiplier = seed % 4 == 1 ? 0.01f : 2;
    p.dry_allowed_length = 1;
    return p;
}

SamplingParams params_of(uint64_t i) {
    SamplingParams p = i % 2 ? dry(i, 40) : mirostat(i, 40);
    if (i % 3 == 0) p.xtc_probability = 0.5f, p.xtc_threshold = 0.01f;
    return p;
}

std::vector<TokenId> prompt_of(uint64_t i) {
    std::vector<TokenId> out = random_prompt(i, 12);
    out.insert(out.end(), out.begin(), out.begin() + 12); // something to draft from
    return out;
}

constexpr uint64_t kRequests = 8;

std::vector<std::vector<TokenId>> alone() {
    std::vector<std::vector<TokenId>> out;
    for (uint64_t i = 0; i < kRequests; ++i) {
        Harness h(tiny_model());
        out.push_back(h.run(h.add(prompt_of(i), params_of(i))).tokens);
    }
    return out;
}

TEST(SamplingStages, MakeTheSameTextWhereSequencesArePreempted) {
    config::EngineConfig c = tiny_model();
    c.engine.num_blocks = 20;
    c.engine.max_model_len = 80;
    c.engine.watermark = 0;
    Harness h(c);
    for (uint64_t i = 0; i < kRequests; ++i) h.add(prompt_of(i), params_of(i));
    h.run_all();
    const auto expected = alone();
    uint32_t preemptions = 0;
    for (uint64_t i = 0; i < kRequests; ++i) {
        EXPECT_EQ(h.outputs.at(i + 1).tokens, expected[i]) << i;
        preemptions += h.outputs.at(i + 1).preemptions;
    }
    EXPECT_GT(preemptions, 3u);
}

TEST(SamplingStages, MakeTheSameTextWithDraftsWhichMirostatDoesWithout) {
    config::EngineConfig c = tiny_model();
    c.proposer = config::PluginChoice{"ngram", {}};
    c.engine.num_speculative_tokens = 3;
    const auto expected = alone();
    uint32_t drafted = 0;
    for (uint64_t i = 0; i < kRequests; ++i) {
        Harness h(c);
        EXPECT_EQ(h.run(h.add(prompt_of(i), params_of(i))).tokens, expected[i]) << i;
        uint32_t own = 0;
        for (const StepReport& r : h.steps) own += r.drafts.drafted_tokens;
        EXPECT_TRUE(i % 2 == 1 || own == 0) << i;
        drafted += own;
    }
    EXPECT_GT(drafted, 0u);
}

TEST(SamplingStages, MakeTheSameTextByAnotherSamplerInTheSlot) {
    Harness h(tiny_model());
    for (uint64_t i = 0; i < kRequests; ++i) h.add(prompt_of(i), params_of(i));
    for (int step = 0; step < 10; ++step) h.step();
    const auto swap = h.engine->control().swap({SwapSlot::kSampler, {"standard", {}}, registry(), prober()});
    h.run_all();
    EXPECT_EQ(swap->record().state, host::SwapState::kCommitted);
    const auto expected = alone();
    for (uint64_t i = 0; i < kRequests; ++i) EXPECT_EQ(h.outputs.at(i + 1).tokens, expected[i]) << i;
}

TEST(SamplingStages, OfEachOutputFollowItsOwnPast) {
    SamplingParams p = mirostat(5, 30);
    p.n = 3;
    Harness h(tiny_model());
    const RequestId id = h.add(prompt_of(1), p);
    h.run_all();
    for (uint32_t i = 0; i < 3; ++i) {
        Harness one(tiny_model());
        EXPECT_EQ((i == 0 ? h.outputs.at(id) : h.others.at({id, i})).tokens,
                  one.run(one.add(prompt_of(1), mirostat(5 + i, 30))).tokens)
            << i;
    }
}

// ---- samplers without them ---------------------------------------------------------------------------

config::EngineConfig on_a_device(const char* sampler) {
    config::EngineConfig c = tiny_model();
    c.device = {"replays", {}};
    c.attention = {"replays", {}};
    c.sampler = {sampler, {}};
    return c;
}

TEST(SamplerWithoutAStage, HasItsRequestsRefusedByName) {
    Harness h(on_a_device("replays"));
    Request r;
    r.prompt = {1, 2, 3};
    r.sampling = mirostat(1, 5);
    const auto id = h.engine->add_request(r);
    ASSERT_FALSE(id);
    EXPECT_THAT(id.error(), HasSubstr("mirostat"));
    EXPECT_THAT(id.error(), HasSubstr("'replays'"));
    EXPECT_EQ(h.run(h.add({1, 2, 3}, greedy(5))).tokens.size(), 5u);
}

TEST(SamplerWithoutAStage, DoesNotTakeTheSlotFromOneThatIsNeeded) {
    Harness h(on_a_device("standard"));
    const RequestId id = h.add({1, 2, 3}, mirostat(1, 20));
    for (int step = 0; step < 5; ++step) h.step();
    auto swap = h.engine->control().swap({SwapSlot::kSampler, {"replays", {}}, registry(), prober()});
    h.step();
    EXPECT_EQ(swap->record().state, host::SwapState::kRolledBack);
    EXPECT_EQ(swap->record().phase, "accepts");
    EXPECT_THAT(swap->record().reason, HasSubstr("mirostat"));
    Harness without(on_a_device("standard"));
    const RequestId same = without.add({1, 2, 3}, mirostat(1, 20));
    EXPECT_EQ(h.run(id).tokens, without.run(same).tokens);
    swap = h.engine->control().swap({SwapSlot::kSampler, {"replays", {}}, registry(), prober()});
    h.run(h.add({1, 2, 3}, greedy(60)));
    EXPECT_EQ(swap->record().state, host::SwapState::kCommitted);
}

TEST(SamplingStages, OutOfRangeAreRefused) {
    Harness h(tiny_model());
    const auto refusal = [&](auto change) {
        Request r;
        r.prompt = {1};
        change(r.sampling);
        const auto id = h.engine->add_request(r);
        return id ? "" : id.error();
    };
    EXPECT_THAT(refusal([](auto& p) { p.mirostat = 1; }), HasSubstr("mirostat is 1, expected 0 (off) or 2"));
    EXPECT_THAT(refusal([](auto& p) { p.typical_p = 0; }), HasSubstr("typical_p is 0"));
    EXPECT_THAT(refusal([](auto& p) { p.dry_base = 0.5f; }), HasSubstr("dry_base is 0.5"));
    EXPECT_THAT(refusal([](auto& p) { p.xtc_probability = NAN; }), HasSubstr("xtc_probability"));
    EXPECT_THAT(refusal([](auto& p) { p.dry_breakers = {3, 300}; }), HasSubstr("dry_breakers has token 300"));
}

}  // namespace
}  // namespace patchbay::engine::sampling_stages_test
