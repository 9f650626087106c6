// The number of drafts that is chosen: more where they are accepted and rows are cheap, fewer where not.
#include "engine/speculation/draft_length.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace patchbay::engine::testing::draft_length_test {
namespace {

using ::testing::ElementsAre;

constexpr uint32_t kMaxDrafts = 6;

struct World { // that a policy lives in
    double acceptance;
    double fixed_us, token_us, draft_us; // of a step, of each token in it, of each draft made
    uint32_t sequences;
    uint32_t least_made = 0; // drafts' worth of proposing in a step without drafts: a draft model's pass
};

// That verifies so many drafts of each sequence, and proposes as many for the next one, or `next`.
StepReport step_of(const World& w, uint32_t drafts, std::optional<uint32_t> next = {}) {
    StepReport r;
    r.work.scheduled_tokens = r.work.decode_tokens = w.sequences * (1 + drafts);
    double reached = 1000; // sequences that are counted, whatever the batch is
    for (uint32_t i = 0; i < drafts; ++i) {
        r.drafts.drafted_at[i] = 1000;
        r.drafts.accepted_at[i] = static_cast<uint32_t>(reached *= w.acceptance);
    }
    r.drafts.propose_ns = static_cast<uint64_t>(1000 * w.draft_us * std::max(next.value_or(drafts), w.least_made));
    r.end_ns = static_cast<uint64_t>(1000 * (w.fixed_us + w.token_us * r.work.scheduled_tokens)) + r.drafts.propose_ns;
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
        const uint32_t before = drafts;
        drafts = policy.choose(w.sequences);
        policy.observe(step_of(w, before, drafts));
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
    {0.5, 1000, 1, 500, 1, 1}, // a pass is made whether or not there is a draft: one
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

std::vector<uint32_t> choices(DraftLength& policy, const World& w, int steps) {
    std::vector<uint32_t> out;
    for (int i = 0; i < steps; ++i) {
        out.push_back(policy.choose(w.sequences));
        policy.observe(step_of(w, out.back()));
    }
    return out;
}

TEST(DraftLength, GoesThroughTheNumbersFirstAndTriesOneNowAndThen) {
    DraftLength policy(kMaxDrafts);
    EXPECT_EQ(policy.chosen(), kMaxDrafts) << "before anything is known";
    const World& dear = kWorlds[4]; // none is best
    const std::vector<uint32_t> all = choices(policy, dear, 130);
    EXPECT_THAT(std::vector(all.begin(), all.begin() + 8), ElementsAre(6, 1, 6, 2, 6, 3, 6, 4));
    EXPECT_EQ(policy.chosen(), all.back());
    std::vector<size_t> tried;
    for (size_t i = 8; i < all.size(); ++i)
        if (all[i] > 0) tried.push_back(i);
    EXPECT_THAT(tried, ElementsAre(32, 64, 96, 128));
    EXPECT_EQ(all[64], kMaxDrafts);
}

TEST(DraftLength, ChoosesTheSameEachTime) {
    for (const World& w : kWorlds) {
        DraftLength first(kMaxDrafts), second(kMaxDrafts);
        EXPECT_EQ(choices(first, w, 200), choices(second, w, 200)) << w.acceptance;
    }
}

TEST(DraftLength, CountsWhatWasAcceptedOnceThoseBeforeItWere) {
    DraftLength policy(kMaxDrafts);
    EXPECT_EQ(policy.acceptance(0), 0.5) << "nothing is known";
    StepReport r;
    r.work.scheduled_tokens = 1;
    r.drafts.drafted_at = {98, 98};
    r.drafts.accepted_at = {49, 48};
    policy.observe(r);
    EXPECT_EQ(policy.acceptance(0), 50.0 / 100);
    EXPECT_EQ(policy.acceptance(1), 49.0 / 51) << "of the 49 that were reached";
    EXPECT_EQ(policy.acceptance(2), 0.5) << "it was never drafted";
    r.work.scheduled_tokens = 0; // a step that computed nothing
    policy.observe(r);
    EXPECT_EQ(policy.acceptance(0), 50.0 / 100);
}

// 4 sequences, of which each computes a token and its drafts: 1 ms a step, 10 µs a token, 30 µs a draft that is made.
TEST(DraftLength, ExpectsTokensASecondAsMeasured) {
    const World w{0.5, 1000, 10, 30, 4};
    DraftLength policy(kMaxDrafts);
    policy.choose(w.sequences);
    EXPECT_EQ(policy.tokens_a_second(2, w.sequences), 0) << "no step has been measured";
    for (int i = 0; i < 300; ++i) {
        const uint32_t drafts = policy.chosen();
        policy.observe(step_of(w, drafts));
        policy.choose(w.sequences);
    }
    for (uint32_t k = 0; k <= kMaxDrafts; ++k) {
        const double expected = 1e9 * rate_of(w, k); // rate_of() is by nanoseconds
        EXPECT_NEAR(policy.tokens_a_second(k, w.sequences) / expected, 1, 0.02) << k;
    }
}

TEST(DraftLength, StepsWithPromptsSayNothingOfTime) {
    const World w = kWorlds[0];
    DraftLength policy(kMaxDrafts);
    choices(policy, w, 50);
    const double before = policy.tokens_a_second(3, w.sequences), accepted = policy.acceptance(0);
    StepReport r = step_of(w, 3);
    r.end_ns *= 1000;
    r.work.prefill_tokens = 1;
    r.drafts.accepted_at[0] = 0;
    policy.observe(r);
    EXPECT_LT(policy.acceptance(0), accepted) << "but of drafts they do";
    EXPECT_LT(policy.tokens_a_second(3, w.sequences), before);
    EXPECT_GT(policy.tokens_a_second(0, w.sequences), 0.9 * rate_of(w, 0) * 1e9) << "a step takes no longer";
}

}  // namespace
}  // namespace patchbay::engine::testing::draft_length_test
