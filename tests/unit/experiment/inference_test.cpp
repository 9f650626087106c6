#include "experiment/inference.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "experiment/run_metrics.hpp"
#include "scipy_goldens.hpp"

namespace patchbay::experiment::inference_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kExact = 1e-9; // of the value

void expect_near(double ours, double theirs) { EXPECT_NEAR(ours, theirs, kExact * std::max(1e-6, std::abs(theirs))); }

TEST(Inference, IntervalsAndTestsOfMeansAreSciPys) {
    for (const scipy::Mean& g : scipy::kMeans) {
        const Estimate e = estimate_of(g.values);
        const Interval interval = interval_of(e, g.alpha);
        expect_near(interval.low, g.low);
        expect_near(interval.high, g.high);
        // Of a mean of a million standard errors the last digits of the sum decide.
        if (std::abs(e.mean) < 1e3 * e.error) expect_near(p_value(e), g.p);
        else EXPECT_NEAR(p_value(e), g.p, kExact);
    }
}

TEST(Inference, DetectableMeansAreSciPys) {
    for (const scipy::Detectable& g : scipy::kDetectable)
        expect_near(detectable_errors(g.freedom, g.alpha, kPower), g.errors);
}

TEST(Inference, DeviationsOfFewValuesAreTooSmallByAKnownShare) {
    expect_near(mean_deviation(1), std::sqrt(2 / M_PI));
    EXPECT_NEAR(mean_deviation(4), 0.939986, 1e-6); // "c4" of 5 and of 10 values, as control charts have it
    EXPECT_NEAR(mean_deviation(9), 0.972659, 1e-6);
    EXPECT_NEAR(mean_deviation(1e6), 1, 1e-6);
    EXPECT_TRUE(std::isnan(mean_deviation(0))) << "one value has none";
}

TEST(Inference, IntervalsOfSharesAreSciPys) {
    for (const scipy::Share& g : scipy::kShares) {
        const Interval interval = share_interval(g.successes, g.trials, kAlpha);
        expect_near(interval.low, g.low);
        expect_near(interval.high, g.high);
    }
    EXPECT_EQ(share_interval(0, 0, kAlpha).low, 0);
    EXPECT_EQ(share_interval(0, 0, kAlpha).high, 1);
}

TEST(Inference, QuantilesAreNumPys) {
    for (const scipy::Quantile& g : scipy::kQuantiles) {
        std::vector<double> values = g.values;
        expect_near(quantile(values, g.q), g.value);
    }
}

TEST(Inference, KnowsNothingOfTheErrorOfOneValue) {
    const double one[] = {3.0};
    const Estimate e = estimate_of(one);
    EXPECT_EQ(e.mean, 3);
    EXPECT_TRUE(std::isnan(interval_of(e, kAlpha).low));
    EXPECT_TRUE(std::isnan(p_value(e)));
    EXPECT_TRUE(std::isnan(estimate_of({}).mean));
}

TEST(Inference, ValuesThatAreAllTheSameProveNoMoreThanTheirSigns) {
    const double zeros[] = {0, 0, 0, 0, 0}, ones[] = {1, 1, 1, 1, 1};
    EXPECT_EQ(p_value(estimate_of(zeros)), 1);
    EXPECT_EQ(p_value(estimate_of(ones)), 1.0 / 16); // 2 of the 32 patterns of signs
}

TEST(Inference, OverlappingValuesCountAsTheIndependentOnesAmongThem) {
    const double values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    const Estimate all = estimate_of(values), few = estimate_of(values, 5);
    EXPECT_EQ(few.mean, all.mean);
    EXPECT_NEAR(few.error, all.error * std::sqrt(2), 1e-12);
    EXPECT_EQ(few.freedom, 4);
    EXPECT_EQ(estimate_of(values, 40).freedom, 9); // never more than there are
}

TEST(Inference, ASecondStageShrinksTheErrorButTakesItsSpreadFromTheFirst) {
    const double values[] = {1, 2, 3, 4, 5, 3, 3, 3, 3, 3};
    const Estimate first = estimate_of(std::span(values).first(5)), both = two_stage_estimate(values, 5);
    EXPECT_EQ(both.mean, estimate_of(values).mean);
    EXPECT_NEAR(both.error, first.error / std::sqrt(2), 1e-12);
    EXPECT_EQ(both.freedom, 4);
    const double wild[] = {1, 2, 3, 4, 5, 100, 200, 300, 400, 500}; // what the first did not show
    EXPECT_EQ(two_stage_estimate(wild, 5).error, estimate_of(wild).error);
    EXPECT_EQ(two_stage_estimate(wild, 5).freedom, 4);
    EXPECT_EQ(two_stage_estimate(values, 10).error, estimate_of(values).error);
}

TEST(Inference, ValuesAreNeededBySpreadAndSizeAndAreNoFewerThanTheFirst) {
    const double some = values_needed(0.05, 10, 0.02, 0.05, 0.9);
    EXPECT_EQ(some, std::ceil(std::pow((2.262157 + 1.383029) * 2.5, 2))); // t of 9 degrees at 0.975 and 0.9
    EXPECT_NEAR(values_needed(0.1, 10, 0.02, 0.05, 0.9), 4 * some, 4);
    EXPECT_EQ(values_needed(0.001, 10, 0.02, 0.05, 0.9), 10);
}

TEST(Holm, MultipliesTheSmallestByAllAndNeverFalls) {
    const double p[] = {0.04, 0.01, kNan, 0.03, 0.9};
    const auto corrected = holm(p);
    EXPECT_NEAR(corrected[1], 0.04, 1e-12); // 0.01 × 4
    EXPECT_NEAR(corrected[3], 0.09, 1e-12); // 0.03 × 3
    EXPECT_NEAR(corrected[0], 0.09, 1e-12); // 0.04 × 2 = 0.08, but not below the one before
    EXPECT_NEAR(corrected[4], 0.9, 1e-12);
    EXPECT_TRUE(std::isnan(corrected[2]));
    const double large[] = {0.6, 0.7};
    EXPECT_EQ(holm(large)[0], 1);
}

}  // namespace
}  // namespace patchbay::experiment::inference_test
