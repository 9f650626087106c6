// Beam search with as many beams as there are sequences is exhaustive: it finds what counting through all finds.
#include "engine/groups/beam_search.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "engine/request/sampling_params.hpp"

namespace patchbay::engine::testing::beam_search_test {
namespace {

using ::testing::ElementsAre;

constexpr TokenId kEnd = 2;
constexpr uint32_t kMaxTokens = 4, kWide = 40;

// What a made-up model thinks of the next token: three tokens, by all before it.
BeamSearch::Candidates candidates(const std::vector<TokenId>& tokens, uint32_t seed) {
    std::seed_seq by{seed, static_cast<uint32_t>(tokens.size()), std::accumulate(tokens.begin(), tokens.end(), 1u,
                     [](uint32_t h, TokenId t) { return h * 31 + static_cast<uint32_t>(t); })};
    std::mt19937 draw(by);
    BeamSearch::Candidates out;
    for (TokenId t = 0; t < 3; ++t) out.emplace_back(t, -static_cast<float>(1 + draw() % 1000) / 100);
    std::ranges::sort(out, [](const auto& a, const auto& b) { return a.second > b.second; });
    return out;
}

struct Found {
    std::vector<TokenId> tokens;
    double score;
};

void count_through(std::vector<TokenId>& tokens, double sum, const SamplingParams& p, uint32_t seed,
                   std::vector<Found>& out) {
    for (const auto& [token, logprob] : candidates(tokens, seed)) {
        const bool may_end = tokens.size() >= p.min_tokens;
        if (token == kEnd && !may_end) continue;
        tokens.push_back(token);
        if (token == kEnd || tokens.size() == p.max_tokens) {
            const double length = static_cast<double>(tokens.size());
            out.push_back({tokens, (sum + logprob) / std::pow(length, p.length_penalty)});
        } else {
            count_through(tokens, sum + logprob, p, seed, out);
        }
        tokens.pop_back();
    }
}

BeamSearch begin(const SamplingParams& p) {
    return BeamSearch({p, {kEnd}, {}}, Hypothesis{.stops = StopMatcher({}, StopMatcher::Keep::kBefore)});
}

void run(BeamSearch& search, uint32_t seed) {
    for (uint32_t step = 0; !search.over(); ++step) {
        ASSERT_LT(step, kMaxTokens);
        std::vector<BeamSearch::Candidates> all;
        for (const Hypothesis& h : search.open()) all.push_back(candidates(h.tokens, seed));
        search.step(all);
    }
}

TEST(BeamSearch, WithBeamsForAllSequencesFindsTheBestOfThem) {
    for (uint32_t seed = 0; seed < 200; ++seed) {
        SamplingParams p;
        p.beam_width = kWide;
        p.max_tokens = kMaxTokens;
        p.length_penalty = std::array{-1.0f, 0.0f, 0.5f, 1.0f, 2.0f}[seed % 5];
        p.min_tokens = seed % 3;
        std::vector<Found> expected;
        std::vector<TokenId> none;
        count_through(none, 0, p, seed, expected);
        std::ranges::stable_sort(expected, [](const Found& a, const Found& b) { return a.score > b.score; });
        BeamSearch search = begin(p);
        ASSERT_NO_FATAL_FAILURE(run(search, seed));
        ASSERT_EQ(search.complete().size(), expected.size());
        for (size_t i = 0; i < expected.size(); ++i)
            ASSERT_NEAR(search.complete()[i].score, expected[i].score, 1e-9) << "seed " << seed << ", place " << i;
        ASSERT_EQ(search.complete()[0].tokens, expected[0].tokens) << seed;
    }
}

SamplingParams two(EarlyStopping early) {
    SamplingParams p;
    p.beam_width = 2;
    p.max_tokens = 10;
    p.early_stopping = early;
    return p;
}

// Two sequences end; the open beam that is left is worse than both at its length, and could win at its full one.
TEST(BeamSearch, EndsByTheRuleThatTheRequestChose) {
    const std::pair<EarlyStopping, bool> cases[] = {
        {EarlyStopping::kYes, true}, {EarlyStopping::kNo, true}, {EarlyStopping::kNever, false}};
    for (const auto& [early, over] : cases) {
        const SamplingParams p = two(early);
        BeamSearch search = begin(p);
        search.step({{{0, -0.5f}, {1, -0.6f}, {3, -5.0f}, {4, -6.0f}}});
        ASSERT_FALSE(search.over());
        search.step({{{kEnd, -0.1f}, {0, -2.5f}, {1, -3.0f}, {3, -4.0f}},
                     {{kEnd, -0.1f}, {0, -2.6f}, {1, -3.0f}, {3, -4.0f}}});
        EXPECT_EQ(search.complete().size(), 2u);
        EXPECT_EQ(search.over(), over) << static_cast<int>(early);
    }
}

TEST(BeamSearch, AnEndAfterTheFirstCandidatesCompletesNothing) {
    const SamplingParams p = two(EarlyStopping::kNo);
    BeamSearch search = begin(p);
    search.step({{{0, -0.5f}, {1, -0.6f}, {3, -5.0f}, {4, -6.0f}}});
    search.step({{{kEnd, -0.1f}, {3, -0.3f}, {0, -7.0f}, {1, -8.0f}},   // in all the first and the second,
                 {{kEnd, -0.3f}, {4, -0.5f}, {0, -7.0f}, {1, -8.0f}}}); // and the third and the fourth
    ASSERT_EQ(search.complete().size(), 1u);
    EXPECT_THAT(search.complete()[0].tokens, ElementsAre(0, kEnd));
    EXPECT_THAT(search.open()[0].tokens, ElementsAre(0, 3));
    EXPECT_THAT(search.open()[1].tokens, ElementsAre(1, 4));
}

TEST(BeamSearch, SaysWhichBeamEachGoesOnFrom) {
    const SamplingParams p = two(EarlyStopping::kNo);
    BeamSearch search = begin(p);
    search.step({{{0, -0.5f}, {1, -0.6f}, {3, -5.0f}, {4, -6.0f}}});
    EXPECT_THAT(search.parents(), ElementsAre(0, 0));
    search.step({{{0, -5.0f}, {1, -6.0f}, {3, -7.0f}, {4, -8.0f}}, {{0, -0.1f}, {1, -0.2f}, {3, -7.0f}, {4, -8.0f}}});
    EXPECT_THAT(search.parents(), ElementsAre(1, 1));
    EXPECT_THAT(search.open()[0].tokens, ElementsAre(1, 0));
    EXPECT_THAT(search.open()[1].tokens, ElementsAre(1, 1));
}

TEST(BeamSearch, SharesLogprobsOfTheTokensThatBeamsHaveInCommon) {
    SamplingParams p = two(EarlyStopping::kNo);
    p.logprobs = 1;
    BeamSearch search = begin(p);
    search.step({{{0, -0.5f}, {1, -0.6f}, {3, -5.0f}, {4, -6.0f}}});
    search.step({{{0, -5.0f}, {1, -6.0f}, {3, -7.0f}, {4, -8.0f}}, {{0, -0.1f}, {1, -0.2f}, {3, -7.0f}, {4, -8.0f}}});
    search.step({{{kEnd, -0.1f}, {0, -0.2f}, {3, -7.0f}, {4, -8.0f}},
                 {{kEnd, -3.0f}, {0, -4.0f}, {3, -7.0f}, {4, -8.0f}}});
    const auto sampled = [&](const Hypothesis& h) {
        std::vector<float> out;
        for (const TokenLogprobs& t : search.logprobs_of(h)) {
            out.push_back(t.sampled);
            EXPECT_EQ(t.top.size(), 1u);
        }
        return out;
    };
    ASSERT_EQ(search.complete().size(), 1u);
    EXPECT_THAT(sampled(search.complete()[0]), ElementsAre(-0.6f, -0.1f, -0.1f));
    EXPECT_THAT(sampled(search.open()[0]), ElementsAre(-0.6f, -0.1f, -0.2f));
    EXPECT_EQ(search.links()[*search.complete()[0].logprobs].before, search.links()[*search.open()[0].logprobs].before);
    EXPECT_EQ(search.links().size(), 2u + 2u + 3u) << "one for each token of a beam or a complete sequence";
}

TEST(BeamSearch, WantsCandidatesEnoughThoughSomeMayNotEndYet) {
    SamplingParams p = two(EarlyStopping::kNo);
    EXPECT_EQ(begin(p).kept(), 4u);
    EXPECT_EQ(begin(p).wanted(), 4u);
    p.min_tokens = 3;
    EXPECT_EQ(begin(p).wanted(), 5u) << "one for the end token, which does not count yet";
}

}  // namespace
}  // namespace patchbay::engine::testing::beam_search_test
