#include "experiment/draws.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace patchbay::experiment::draws_test {
namespace {

struct Moments {
    double mean, cv;
};

template <class F>
Moments moments_of(F&& draw, uint64_t n = 20000) {
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < n; ++i) {
        const double x = draw(i);
        sum += x;
        squares += x * x;
    }
    const double mean = sum / static_cast<double>(n);
    return {mean, std::sqrt(squares / static_cast<double>(n) - mean * mean) / mean};
}

TEST(Draws, AreTheSameForTheSameSeedRepeatAndNumber) {
    const Draws a(7, 3), b(7, 3);
    for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(a.word(Purpose::kArrival, i), b.word(Purpose::kArrival, i));
}

TEST(Draws, DifferBySeedRepeatPurposeAndNumber) {
    const uint64_t base = Draws(7, 3).word(Purpose::kArrival, 5);
    EXPECT_NE(base, Draws(8, 3).word(Purpose::kArrival, 5));
    EXPECT_NE(base, Draws(7, 4).word(Purpose::kArrival, 5));
    EXPECT_NE(base, Draws(7, 3).word(Purpose::kOffset, 5));
    EXPECT_NE(base, Draws(7, 3).word(Purpose::kArrival, 6));
}

TEST(Draws, BelowReachesEveryValueAndNoOther) {
    const Draws d(1, 0);
    std::map<uint64_t, int> seen;
    for (uint64_t i = 0; i < 6000; ++i) seen[d.below(Purpose::kOffset, i, 6)] += 1;
    ASSERT_EQ(seen.size(), 6u);
    EXPECT_EQ(seen.rbegin()->first, 5u);
    for (const auto& [value, count] : seen) EXPECT_NEAR(count, 1000, 150) << value;
}

TEST(Draws, ExponentialHasMeanAndDeviationOfOne) {
    const Draws d(2, 0);
    const Moments m = moments_of([&](uint64_t i) { return d.exponential(Purpose::kArrival, i); });
    EXPECT_NEAR(m.mean, 1, 0.03);
    EXPECT_NEAR(m.cv, 1, 0.03);
}

TEST(Draws, GammaHasTheMeanOfItsShapeAboveAndBelowOne) {
    const Draws d(3, 0);
    for (const double shape : {0.11, 0.5, 1.0, 4.0}) {
        const Moments m = moments_of([&](uint64_t i) { return d.gamma(Purpose::kArrival, i, shape); });
        EXPECT_NEAR(m.mean / shape, 1, 0.06) << shape;
        EXPECT_NEAR(m.cv * std::sqrt(shape), 1, 0.06) << shape;
    }
}

TEST(Draws, PermutationHoldsEachNumberOnce) {
    auto order = Draws(4, 0).permutation(Purpose::kRunOrder, 50);
    EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
    std::sort(order.begin(), order.end());
    for (uint32_t i = 0; i < 50; ++i) EXPECT_EQ(order[i], i);
}

TEST(LengthSource, KeepsToTheBoundsOfItsDistribution) {
    const Draws d(5, 0);
    const LengthSource uniform(UniformLength{3, 9}), lognormal(LognormalLength{100, 2, 10, 500}),
        zipf(ZipfLength{1.2, 5, 50});
    for (uint64_t i = 0; i < 2000; ++i) {
        EXPECT_THAT(uniform.draw(d, Purpose::kPromptLength, i), ::testing::AllOf(::testing::Ge(3u), ::testing::Le(9u)));
        EXPECT_THAT(lognormal.draw(d, Purpose::kPromptLength, i),
                    ::testing::AllOf(::testing::Ge(10u), ::testing::Le(500u)));
        EXPECT_THAT(zipf.draw(d, Purpose::kPromptLength, i), ::testing::AllOf(::testing::Ge(5u), ::testing::Le(50u)));
    }
}

TEST(LengthSource, LognormalHasTheGivenMeanAndSpread) {
    const Draws d(6, 0);
    const LengthSource s(LognormalLength{200, 0.5, 1, 1u << 20});
    const Moments m = moments_of([&](uint64_t i) { return s.draw(d, Purpose::kPromptLength, i); });
    EXPECT_NEAR(m.mean, 200, 4);
    EXPECT_NEAR(m.cv, 0.5, 0.02);
}

TEST(LengthSource, ZipfHalvesFromTheFirstToTheSecondValueAtExponentOne) {
    const Draws d(7, 0);
    const LengthSource s(ZipfLength{1, 1, 4}); // weights 1, 1/2, 1/3, 1/4 of 25/12
    std::map<uint32_t, double> share;
    for (uint64_t i = 0; i < 20000; ++i) share[s.draw(d, Purpose::kPromptLength, i)] += 1.0 / 20000;
    EXPECT_NEAR(share[1], 12.0 / 25, 0.02);
    EXPECT_NEAR(share[2], 6.0 / 25, 0.02);
    EXPECT_NEAR(share[4], 3.0 / 25, 0.02);
}

TEST(LengthSource, EmpiricalDrawsValuesByTheirShare) {
    const Draws d(8, 0);
    const LengthSource s(EmpiricalLength{{10, 10, 10, 20}});
    int tens = 0;
    for (uint64_t i = 0; i < 4000; ++i) tens += s.draw(d, Purpose::kOutputLength, i) == 10;
    EXPECT_NEAR(tens, 3000, 150);
}

}  // namespace
}  // namespace patchbay::experiment::draws_test
