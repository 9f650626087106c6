// Rows of drafts before and after the sampler: which of them are decided without it, and which are left to it.
#include "engine/speculation/draft_verification.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "engine/sampling/sample_rows.hpp"
#include "engine/sampling/step_samples.hpp"
#include "engine/speculation/draft_records.hpp"
#include "unit/engine_parts/fake_policies.hpp"
#include "unit/engine_parts/part_fixture.hpp"

namespace patchbay::engine::testing::draft_verification_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kVocab = 8;

struct BareSampler {
    void sample(SampleBatch& b) { std::fill_n(b.raw.tokens, b.size(), 0); }
};
constexpr pb_component kBareSampler = patchbay::sampler<BareSampler>({"bare", "1.0.0", "gives no probabilities"});

config::SpeculationSettings by(config::Verification how, std::vector<double> rates = {}) {
    config::SpeculationSettings s;
    s.rejection_sample_method = how;
    s.synthetic_acceptance_rates = std::move(rates);
    return s;
}

// A step of sequences with drafts, over a sampler whose probabilities are the softmax of the logits.
struct Bench {
    explicit Bench(config::SpeculationSettings s) : settings(std::move(s)) {
        sampler.policy.processed = [this](SampleBatch& b) {
            processed += b.size();
            for (uint32_t i = 0; i < b.size(); ++i) {
                double total = 0;
                for (const float x : b.logits(i)) total += std::exp(x);
                for (float& x : b.logits(i)) x = static_cast<float>(x - std::log(total));
            }
        };
    }
    Sequence& add(std::vector<TokenId> drafted, float temperature = 1) {
        SamplingParams p;
        p.temperature = temperature;
        p.logprobs = 0;
        owned.push_back(sequence(owned.size() + 1, 4, p));
        Sequence& s = *owned.back();
        s.sampling.seed = 100 + s.id;
        s.tokens.push_back(7);
        s.tokens.insert(s.tokens.end(), drafted.begin(), drafted.end());
        s.drafts = static_cast<uint32_t>(drafted.size());
        DraftRecord& r = drafts.of(s.id);
        r.drawn.assign(drafted.size(), 0);
        r.probs.assign(drafted.size() * kVocab, 0);
        step.push_back({&s, s.drafts + 1, s.confirmed(), s.drafts + 1, 0, rows.count()});
        for (uint32_t j = 0; j <= s.drafts; ++j) {
            pb_sample_row row{};
            row.id = s.id;
            row.seed = s.sampling.seed;
            row.position = s.confirmed() + j;
            row.params = &s.sampling.params;
            rows.add(row, false);
            logits.insert(logits.end(), kVocab, 0.0f);
        }
        return s;
    }
    void only(uint32_t row, TokenId token) { // can follow
        for (uint32_t t = 0; t < kVocab; ++t)
            logits[row * kVocab + t] = t == static_cast<uint32_t>(token) ? 0.0f : -INFINITY;
    }
    std::vector<TokenId> verify(std::vector<TokenId> sampled) {
        verification.begin(step);
        const auto read = verification.read(*sampler.component, rows, logits);
        if (!read) throw std::runtime_error(read.error());
        samples.clear(rows.count(), 0);
        samples.tokens = std::move(sampled);
        verification.decide(samples);
        verification.accept_by_rates(samples);
        return samples.tokens;
    }

    config::SpeculationSettings settings;
    DraftRecords drafts;
    std::vector<std::unique_ptr<Sequence>> owned;
    std::vector<Placed> step;
    SampleRows rows;
    std::vector<float> logits;
    StepSamples samples;
    Played<FakeSampler> sampler = play<FakeSampler>(kFakeSampler);
    uint32_t processed = 0; // rows
    DraftVerification verification{settings, kVocab, drafts};
};

TEST(DraftVerification, ByMatchLeavesAllToTheSampler) {
    Bench b(by(config::Verification::kMatch));
    b.add({3, 4});
    EXPECT_THAT(b.verify({3, 5, 6}), ElementsAre(3, 5, 6));
    EXPECT_EQ(b.processed, 0u);
}

TEST(DraftVerification, ByRejectionADraftThatIsSureToFollowIsTaken) {
    Bench b(by(config::Verification::kRejection));
    b.add({3, 4});
    b.only(0, 3);
    b.only(1, 4);
    EXPECT_THAT(b.verify({0, 0, 6}), ElementsAre(3, 4, 6)) << "the row after the last draft is the sampler's";
    EXPECT_EQ(b.processed, 2u);
    EXPECT_FLOAT_EQ(b.samples.logprobs[0], 0) << "of the raw logits";
}

TEST(DraftVerification, ByRejectionADraftThatCannotFollowBecomesAnotherTokenAndEndsTheChain) {
    Bench b(by(config::Verification::kRejection));
    b.add({3, 4, 5});
    b.only(0, 3);
    b.only(1, 6);
    b.only(2, 5);
    EXPECT_THAT(b.verify({0, 0, 0, 1}), ElementsAre(3, 6, 0, 1)) << "rows after it are as they were sampled";
}

TEST(DraftVerification, EachSequenceIsVerifiedByItsOwnRows) {
    Bench b(by(config::Verification::kRejection));
    b.add({3});
    b.add({2, 2}, 0); // at temperature 0 its distribution has one token, which is matched
    b.add({});
    b.add({5});
    b.only(0, 3);
    b.only(2, 1);
    b.only(6, 5);
    EXPECT_THAT(b.verify({0, 0, 0, 0, 0, 0, 0, 0}), ElementsAre(3, 0, 0, 0, 0, 0, 5, 0));
    EXPECT_EQ(b.processed, 2u) << "rows at temperature 0 are not looked at";
}

TEST(DraftVerification, ByRejectionUsesWhatADraftWasDrawnFrom) {
    Bench b(by(config::Verification::kRejection));
    Sequence& s = b.add({3});
    b.drafts.of(s.id).drawn = {1};
    b.drafts.of(s.id).probs = {0, 0, 0, 0.125f, 0.875f, 0, 0, 0}; // p is 1/8 of each: q(3) = p(3), so 3 is always taken
    for (uint64_t seed = 0; seed < 200; ++seed) {
        b.rows.rows[0].seed = seed;
        ASSERT_EQ(b.verify({0, 0})[0], 3) << seed;
    }
    b.drafts.of(s.id).drawn = {0}; // it follows from the tokens before it: taken once in eight times
    uint32_t taken = 0;
    for (uint64_t seed = 0; seed < 800; ++seed) {
        b.rows.rows[0].seed = seed;
        taken += b.verify({0, 0})[0] == 3;
    }
    EXPECT_NEAR(taken, 100, 40);
}

TEST(DraftVerification, WhereNoTokenHasAProbabilityTheSamplersWordCounts) {
    Bench b(by(config::Verification::kRejection));
    b.add({3, 4});
    std::fill_n(b.logits.begin(), 2 * kVocab, -INFINITY);
    EXPECT_THAT(b.verify({1, 2, 6}), ElementsAre(1, 2, 6));
}

TEST(DraftVerification, AFailureOfTheSamplersProbabilitiesFailsTheStep) {
    Bench b(by(config::Verification::kRejection));
    b.add({3});
    b.sampler.policy.processed = [](SampleBatch&) { throw Error(PB_FAILED, "no"); };
    b.verification.begin(b.step);
    const auto read = b.verification.read(*b.sampler.component, b.rows, b.logits);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error(), "sampler 'fake': process: no");
}

TEST(DraftVerification, WhatWasDecidedIsForgottenInTheNextStep) {
    Bench b(by(config::Verification::kRejection));
    b.add({3});
    b.only(0, 3);
    EXPECT_THAT(b.verify({0, 6}), ElementsAre(3, 6));
    b.step.clear();
    EXPECT_THAT(b.verify({0, 6}), ElementsAre(0, 6));
}

TEST(DraftVerification, ByRatesDraftsAreTakenWhateverTheModelSays) {
    Bench b(by(config::Verification::kSynthetic, {1, 1, 0}));
    b.add({3, 4, 5});
    EXPECT_THAT(b.verify({0, 0, 5, 6}), ElementsAre(3, 4, 6, 6))
        << "the third one is refused: a token that equals it becomes another";
    EXPECT_THAT(b.verify({0, 0, 2, 6}), ElementsAre(3, 4, 2, 6)) << "and one that does not stays";
}

TEST(DraftVerification, ByRatesWhatComesAfterARefusedDraftStays) {
    Bench b(by(config::Verification::kSynthetic, {0, 0}));
    b.add({7, 4});
    EXPECT_THAT(b.verify({7, 4, 6}), ElementsAre(0, 4, 6)) << "another token than 7 of eight is 0";
}

TEST(CheckVerification, RejectionNeedsProbabilitiesOnTheHost) {
    const auto full = play<FakeSampler>(kFakeSampler);
    const auto bare = play<BareSampler>(kBareSampler);
    const auto rejection = by(config::Verification::kRejection);
    using execution::TokenSource;
    EXPECT_TRUE(check_verification(rejection, *full.component, TokenSource::kModel));
    EXPECT_THAT(check_verification(rejection, *full.component, TokenSource::kMadeUp).error(),
                HasSubstr("a device that computes nothing"));
    EXPECT_THAT(check_verification(rejection, *bare.component, TokenSource::kModel).error(),
                HasSubstr("'bare' does not"));
    EXPECT_TRUE(check_verification(by(config::Verification::kMatch), *bare.component, TokenSource::kMadeUp));
}

}  // namespace
}  // namespace patchbay::engine::testing::draft_verification_test
