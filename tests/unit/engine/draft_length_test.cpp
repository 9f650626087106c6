// The number of drafts that is chosen: more where they are accepted and rows are cheap, fewer where not.
#include "engine/speculation/draft_length.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::testing {
namespace {

constexpr uint32_t kMaxDrafts = 6;

struct World { // that a policy lives in
    double acceptance;
    double fixed_us, token_us, draft_us; // of a step, of each token in it, of each draft made
    uint32_t sequences;
};

StepReport step_of(const World& w, uint32_t drafts) {
    StepReport r;
    r.work.scheduled_tokens = r.work.decode_tokens = w.sequences * (1 + drafts);
    double reached = 1000; // sequences that are counted, whatever the batch is
    for (uint32_t i = 0; i < drafts; ++i) {
        r.drafts.drafted_at[i] = 1000;
        r.drafts.accepted_at[i] = static_cast<uint32_t>(reached *= w.acceptance);
    }
    r.calls.propose_ns = static_cast<uint64_t>(1000 * w.draft_us * drafts);
    r.end_ns = static_cast<uint64_t>(1000 * (w.fixed_us + w.token_us * r.work.scheduled_tokens)) + r.calls.propose_ns;
    return r;
}

double rate_of(const World& w, uint32_t drafts) { // tokens a second, exactly
    double tokens = 0;
    for (uint32_t i = 0; i <= drafts; ++i) tokens += std::pow(w.acceptance, i);
    return w.sequences * tokens / static_cast<double>(step_of(w, drafts).end_ns);
}

// The number that is chosen mostly, after some steps of such a world.
uint32_t settled(DraftLength& policy, const World& w) {
    uint32_t drafts = kMaxDrafts, times[kMaxDrafts + 1] = {};
    for (int i = 0; i < 400; ++i) {
        const StepReport r = step_of(w, drafts);
        drafts = policy.choose(w.sequences);
        policy.observe(r);
        if (i >= 200) times[drafts] += 1;
    }
    return static_cast<uint32_t>(std::max_element(times, times + kMaxDrafts + 1) - times);
}

constexpr World kWorlds[] = {
    {0.9, 1000, 1, 1, 1},   // memory-bound, and nearly always right: all
    {0.5, 1000, 1, 1, 1},   // half of them right, for nothing
    {0.7, 1000, 50, 50, 1}, // each costs a little
    {0.3, 100, 50, 100, 4},
    {0.05, 1000, 10, 300, 1}, // wrong and dear: none
    {0.8, 100, 100, 1, 64},   // a large batch: each token costs in full
};

TEST(DraftLength, ComesCloseToTheBestNumber) {
    for (const World& w : kWorlds) {
        DraftLength policy(kMaxDrafts);
        double best = 0;
        for (uint32_t k = 0; k <= kMaxDrafts; ++k) best = std::max(best, rate_of(w, k));
        const uint32_t chosen = settled(policy, w);
        EXPECT_GT(rate_of(w, chosen), 0.98 * best) << w.acceptance << ": " << chosen;
    }
}

TEST(DraftLength, FollowsAcceptanceAndLoad) {
    DraftLength policy(kMaxDrafts);
    EXPECT_EQ(settled(policy, kWorlds[0]), kMaxDrafts);
    EXPECT_LT(settled(policy, kWorlds[4]), 2u) << "the text has changed";
    EXPECT_EQ(settled(policy, kWorlds[0]), kMaxDrafts) << "and back: drafts were still tried";
    EXPECT_LT(settled(policy, kWorlds[5]), 3u) << "the batch has grown";
}

// What choose() does in a run, on a device that charges time: the same each time, and what metrics record.
TEST(DraftLength, OfAnEngineIsTheSameInEachRunAndChangesNoText) {
    const auto run = [](config::DraftMode mode, double rate) {
        auto c = tiny_model();
        c.model.dtype = config::DType::kBf16;
        c.device = {"sim", {{"matmul_bf16", "1e9"}, {"matmul_f32", "1e9"}, {"memory_read", "1e9"},
                            {"memory_bytes", "100000000"}}};
        c.proposer = config::PluginChoice{"last_token", {}};
        c.engine.num_speculative_tokens = 4;
        c.speculative = {mode, config::Verification::kSynthetic, std::vector<double>(4, rate)};
        Harness h(c);
        for (uint64_t i = 0; i < 3; ++i) h.add(random_prompt(i, 10), greedy(200));
        h.run_all();
        std::vector<uint32_t> lengths;
        for (const StepReport& r : h.steps) lengths.push_back(r.drafts.length);
        return lengths;
    };
    const auto lengths = run(config::DraftMode::kAdaptive, 0.05);
    EXPECT_EQ(lengths, run(config::DraftMode::kAdaptive, 0.05));
    EXPECT_LT(lengths.back(), 2u);
    for (const uint32_t k : run(config::DraftMode::kFixed, 0.05)) EXPECT_EQ(k, 4u);
    auto c = tiny_model();
    Harness plain(c);
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.engine.num_speculative_tokens = 4;
    c.speculative.mode = config::DraftMode::kAdaptive;
    Harness h(c);
    for (uint64_t i = 0; i < 4; ++i)
        for (Harness* each : {&plain, &h}) each->add(random_prompt(i, 30), i % 2 ? seeded(i, 60) : greedy(60));
    plain.run_all();
    h.run_all();
    for (const auto& [id, o] : h.outputs) EXPECT_EQ(o.tokens, plain.outputs.at(id).tokens) << id;
}

}  // namespace
}  // namespace patchbay::engine::testing
