// Verification of drafts by rejection and by given rates: exact distributions, and a bias that must not go unseen.
#include "engine/speculation/verification.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace patchbay::engine::verification_test {
namespace {

constexpr size_t kDraws = 100'000, kVocab = 12;

using Row = std::vector<float>;

Row random_row(uint64_t seed, uint32_t which) { // a distribution with weights of very different sizes
    Row out(kVocab);
    for (uint32_t t = 0; t < kVocab; ++t)
        out[t] = static_cast<float>(std::exp(3 * uniform(draw(seed, which, Stream::kTest, t)[0])));
    const float sum = std::accumulate(out.begin(), out.end(), 0.0f);
    for (float& x : out) x /= sum;
    return out;
}

Row without(Row row, std::initializer_list<size_t> tokens) {
    for (const size_t t : tokens) row[t] = 0;
    const float sum = std::accumulate(row.begin(), row.end(), 0.0f);
    for (float& x : row) x /= sum;
    return row;
}

// Wilson and Hilferty: how many standard deviations chi-square is above what chance gives.
double excess(const std::vector<size_t>& counts, const Row& p) {
    double chi = 0, cells = 0;
    for (size_t t = 0; t < p.size(); ++t) {
        const double expected = p[t] * static_cast<double>(kDraws);
        if (p[t] == 0 && counts[t] > 0) return INFINITY;
        if (p[t] == 0) continue;
        chi += (static_cast<double>(counts[t]) - expected) * (static_cast<double>(counts[t]) - expected) / expected;
        cells += 1;
    }
    if (cells < 2) return 0;
    const double df = cells - 1, spread = 2 / (9 * df);
    return (std::cbrt(chi / df) - (1 - spread)) / std::sqrt(spread);
}
constexpr double kSurely = 4; // standard deviations

struct Case {
    std::string name;
    Row p, q; // q empty: the draft is always token 3
};

std::vector<Case> cases() {
    std::vector<Case> out;
    for (uint64_t seed = 0; seed < 4; ++seed)
        out.push_back({"random " + std::to_string(seed), random_row(seed, 0), random_row(seed, 1)});
    const Row p = random_row(9, 0), q = random_row(9, 1);
    out.push_back({"equal", p, p});
    out.push_back({"draft without support", p, without(q, {0, 3, 4, 5, 11})});
    out.push_back({"truncated target", without(p, {1, 2, 6, 7, 8}), q});
    out.push_back({"nothing in common", without(p, {0, 1, 2, 3, 4, 5}), without(q, {6, 7, 8, 9, 10, 11})});
    out.push_back({"chosen", p, {}});
    out.push_back({"chosen and excluded", without(p, {3}), {}});
    out.push_back({"chosen and certain", without(p, {0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11}), {}});
    return out;
}

template <class Verify>
std::vector<size_t> emitted(const Case& c, Verify&& verify) {
    std::vector<size_t> counts(kVocab, 0);
    for (uint64_t position = 0; position < kDraws; ++position) {
        const TokenId draft = c.q.empty() ? 3 : draw_token(c.q, draw(7, position, Stream::kDraft, 1));
        counts[static_cast<size_t>(verify(draft, position))] += 1;
    }
    return counts;
}

TEST(VerificationByRejection, GivesTheTargetsDistributionWhateverTheDraft) {
    for (const Case& c : cases()) {
        const auto counts =
            emitted(c, [&](TokenId draft, uint64_t at) { return verify_by_rejection(c.p, c.q, draft, 7, at); });
        EXPECT_LT(excess(counts, c.p), kSurely) << c.name;
    }
}

TEST(VerificationByRejection, IsSeenToBeBiasedByTwoPerCent) {
    for (const Case& c : cases()) {
        if (c.name == "equal" || c.name == "chosen and certain") continue; // every draft is right
        const auto counts = emitted(c, [&](TokenId draft, uint64_t at) { // takes one draft in fifty as it is
            const bool biased = uniform(draw(8, at, Stream::kTest, 0)[0]) < 0.02;
            return biased ? draft : verify_by_rejection(c.p, c.q, draft, 7, at);
        });
        EXPECT_GT(excess(counts, c.p), kSurely) << c.name << ": a bias goes unseen";
    }
}

// The share of drafts that are accepted is the most there can be: the sum of min(p, q).
TEST(VerificationByRejection, AcceptsAsManyAsThereCanBe) {
    const Case c{"", random_row(3, 0), random_row(3, 1)};
    double overlap = 0, accepted = 0;
    for (size_t t = 0; t < kVocab; ++t) overlap += std::min(c.p[t], c.q[t]);
    emitted(c, [&](TokenId draft, uint64_t at) {
        const TokenId token = verify_by_rejection(c.p, c.q, draft, 7, at);
        accepted += token == draft;
        return token;
    });
    EXPECT_NEAR(accepted / kDraws, overlap, 0.01);
}

TEST(VerificationByRejection, BearsRowsThatAreNoDistributions) {
    const Row nothing(kVocab, 0), nan(kVocab, NAN), p = random_row(1, 0);
    EXPECT_EQ(verify_by_rejection(nothing, {}, 3, 7, 1), -1);
    EXPECT_EQ(verify_by_rejection(nan, nan, 3, 7, 1), -1);
    for (uint64_t at = 0; at < 100; ++at) {
        const TokenId token = verify_by_rejection(p, nan, 3, 7, at);
        EXPECT_TRUE(token >= 0 && token < static_cast<TokenId>(kVocab));
    }
}

TEST(SyntheticAcceptance, HoldsItsRatesByPlace) {
    const std::vector<double> rates = {0.9, 0.55, 0.54, 0.1, 0, 0};
    const SyntheticAcceptance acceptance(rates);
    std::vector<double> accepted(rates.size() + 1, 0);
    for (uint64_t chain = 0; chain < kDraws; ++chain)
        for (uint32_t i = 0; i <= rates.size() && acceptance.accepts(i, chain, 10 + i); ++i) accepted[i] += 1;
    for (size_t i = 0; i < rates.size(); ++i) EXPECT_NEAR(accepted[i] / kDraws, rates[i], 0.01) << i;
    EXPECT_EQ(accepted.back(), 0) << "a place without a rate";
}

}  // namespace
}  // namespace patchbay::engine::verification_test
