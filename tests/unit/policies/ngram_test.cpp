#include <algorithm>

#include "unit/policies/plugins_fixture.hpp"

namespace patchbay::policies::ngram_test {
namespace {

using Tokens = std::vector<int32_t>;

Tokens propose(const Tokens& history, uint32_t max_tokens, const host::Settings& settings = {}) {
    const auto p = must(registry().proposer("ngram", settings, services()));
    Tokens drafts(max_tokens, -1);
    uint32_t count = 0;
    const pb_propose_row row{1, history.data(), static_cast<uint32_t>(history.size()), max_tokens};
    pb_propose_batch b{sizeof b, 1, sizeof row, max_tokens, &row, drafts.data(), &count, nullptr};
    EXPECT_EQ(p.table->propose(p.self(), &b), PB_OK);
    drafts.resize(count);
    return drafts;
}

std::vector<Tokens> paths(const Tokens& history, uint32_t max_tokens, uint32_t max_paths) {
    const auto p = must(registry().proposer("ngram", {}, services()));
    const uint32_t room = max_tokens * max_paths;
    Tokens drafts(room, -1), parents(room, -9);
    uint32_t count = 0;
    const pb_propose_row row{1, history.data(), static_cast<uint32_t>(history.size()), max_tokens, max_paths, 0};
    pb_propose_batch b{sizeof b, 1, sizeof row, room, &row, drafts.data(), &count, parents.data()};
    EXPECT_EQ(p.table->propose(p.self(), &b), PB_OK);
    std::vector<Tokens> out;
    parents.resize(count);
    for (uint32_t k = 0; k < count; ++k) {
        if (std::ranges::count(parents, static_cast<int32_t>(k)) > 0) continue;
        Tokens& path = out.emplace_back();
        for (auto at = static_cast<int32_t>(k); at >= 0; at = parents[static_cast<size_t>(at)])
            path.insert(path.begin(), drafts[static_cast<size_t>(at)]);
    }
    return out;
}

TEST(Ngram, RepeatsWhatFollowedTheLastTokensBefore) {
    EXPECT_EQ(propose({1, 2, 3, 4, 5, 9, 1, 2, 3}, 3), (Tokens{4, 5, 9}));
}

TEST(Ngram, TheLongestAgreementWins) {
    // "2 3" stands twice; after "1 2 3" came 7, after "8 2 3" came 5
    EXPECT_EQ(propose({1, 2, 3, 7, 8, 2, 3, 5, 1, 2, 3}, 1), (Tokens{7}));
}

TEST(Ngram, OfEqualAgreementsTheLatestWins) { EXPECT_EQ(propose({2, 3, 7, 2, 3, 5, 2, 3}, 1), (Tokens{5})); }

TEST(Ngram, BranchesToWhatFollowedElsewhere) {
    // "1 2 3" was followed by 7 8, "8 2 3" by 5 1
    const Tokens history = {1, 2, 3, 7, 8, 2, 3, 5, 1, 2, 3};
    EXPECT_EQ(paths(history, 2, 3), (std::vector<Tokens>{{7, 8}, {5, 1}})) << "the longest agreement first";
    EXPECT_EQ(paths(history, 2, 1), (std::vector<Tokens>{{7, 8}}));
    EXPECT_EQ(paths({4, 5, 6, 4, 5, 7, 4, 5, 6, 8, 4, 5}, 2, 2), (std::vector<Tokens>{{6, 8}, {7, 4}}))
        << "the latest first";
    EXPECT_EQ(paths({4, 5, 6, 4, 5, 7, 4, 5, 6, 8, 4, 5}, 2, 4), (std::vector<Tokens>{{6, 8}, {7, 4}, {6, 4}}));
    EXPECT_EQ(paths({9, 9, 9, 9, 9, 9}, 3, 4).size(), 1u) << "what is the beginning of a path is none";
}

TEST(Ngram, SaysNothingWithoutAnAgreementOfTheShortestLength) {
    EXPECT_EQ(propose({1, 2, 3, 4, 3}, 4), (Tokens{}));
    EXPECT_EQ(propose({1, 2, 3, 4, 3}, 4, {{"prompt_lookup_min", "1"}}), (Tokens{4, 3, 4, 3}));
    EXPECT_EQ(propose({5}, 4), (Tokens{}));
}

TEST(Ngram, ATextThatRepeatsItselfGoesOn) {
    EXPECT_EQ(propose({7, 7, 7, 7, 7}, 3, {{"prompt_lookup_max", "2"}}), (Tokens{7, 7, 7}));
    EXPECT_EQ(propose({1, 2, 1, 2, 1, 2}, 5), (Tokens{1, 2, 1, 2, 1}));
}

TEST(Ngram, AgreesWithANaiveSearch) {
    uint32_t state = 1;
    for (int round = 0; round < 300; ++round) {
        Tokens h;
        for (int i = 0; i < 40; ++i) h.push_back(static_cast<int32_t>((state = state * 1664525 + 1013904223) >> 30));
        size_t best = 0, best_length = 1; // shortest 2
        const size_t n = h.size();
        for (size_t back = 1; back < n; ++back) {
            size_t k = 0;
            while (back + k < n && h[n - 1 - k] == h[n - 1 - back - k]) ++k;
            if (std::min<size_t>(k, 4) > best_length) best = back, best_length = std::min<size_t>(k, 4);
        }
        Tokens expected;
        for (size_t j = 0; best > 0 && j < 5; ++j) expected.push_back(h[n - best + j % best]);
        ASSERT_EQ(propose(h, 5), expected) << round;
    }
}

TEST(Ngram, RefusesLengthsThatMakeNoSense) {
    EXPECT_EQ(
        registry().proposer("ngram", {{"prompt_lookup_min", "5"}, {"prompt_lookup_max", "2"}}, services()).error(),
        "proposer 'ngram': create: prompt_lookup_min is more than prompt_lookup_max");
}

}  // namespace
}  // namespace patchbay::policies::ngram_test
