#include "experiment/comparison.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "made_up_runs.hpp"

namespace patchbay::experiment::comparison_test {
namespace {

// [variant][repeat] of one metric; the others have no values.
Measured measured_of(const std::string& metric, const std::vector<std::vector<double>>& values) {
    Measured m;
    for (const auto& of_variant : values) {
        m.values.emplace_back(metric_infos().size(), std::vector<double>(of_variant.size(), kNoValue));
        m.values.back()[metric_named(metric).value()] = of_variant;
    }
    return m;
}

Difference judged(const Measured& m, const std::string& metric, size_t variant = 1) {
    return difference_of(judge(m, question_of(0, {metric}))[variant].comparison, metric);
}

const std::vector<double> kFive{100, 200, 150, 120, 180};
std::vector<double> times(const std::vector<double>& values, const std::vector<double>& factors) {
    std::vector<double> out;
    for (size_t i = 0; i < values.size(); ++i) out.push_back(values[i] * factors[i % factors.size()]);
    return out;
}

TEST(Comparison, OfTimesIsOfTheirRatios) {
    const std::vector<double> factors{1.09, 1.11, 1.1, 1.08, 1.12};
    const auto results =
        judge(measured_of("ttft_p50", {kFive, times(kFive, factors)}), question_of(0, {"ttft_p50"}));
    const Difference& d = difference_of(results[1].comparison, "ttft_p50");
    double logs = 0;
    for (const double f : factors) logs += std::log(f) / 5;
    const double base = value_of(results[0].metrics, "ttft_p50");
    EXPECT_TRUE(d.is_ratio);
    EXPECT_NEAR(d.value, base * std::expm1(logs), 1e-9);
    EXPECT_NEAR(value_of(results[1].metrics, "ttft_p50") - base, d.value, 1e-9); // the table adds up
    EXPECT_EQ(d.verdict, Verdict::kWorse);
    EXPECT_GT(d.low, 0.08 * base); // how much the repeats differ from one another does not matter
    EXPECT_LT(d.high, 0.12 * base);
}

TEST(Comparison, OfSharesAndOfZerosIsOfTheirDifferences) {
    const std::vector<double> more{51, 62, 55, 58, 60}, less{41, 51, 46, 47, 51};
    const Difference share = judged(measured_of("goodput_share", {less, more}), "goodput_share");
    EXPECT_FALSE(share.is_ratio);
    EXPECT_NEAR(share.value, 10, 1e-9);
    EXPECT_EQ(share.verdict, Verdict::kBetter);
    const Difference rate = judged(measured_of("goodput_rate", {{0, 1, 2, 1, 0}, {2, 3, 4, 3, 2.1}}), "goodput_rate");
    EXPECT_FALSE(rate.is_ratio);
    EXPECT_NEAR(rate.value, 2.02, 1e-9);
}

TEST(Comparison, JudgesPrimaryMetricsOnly) {
    const Measured m = measured_of("ttft_p50", {kFive, times(kFive, {1.1, 1.11})});
    const auto results = judge(m, question_of(0, {"e2e_p50"}));
    const Difference& d = difference_of(results[1].comparison, "ttft_p50");
    EXPECT_EQ(d.verdict, Verdict::kExploratory);
    EXPECT_GT(d.low, 0);
    EXPECT_TRUE(std::isnan(d.corrected));
    EXPECT_EQ(difference_of(results[1].comparison, "e2e_p50").verdict, Verdict::kNone); // no data
}

TEST(Comparison, CorrectsForTheNumberOfVariants) {
    const std::vector<double> noise{1.02, 1.06, 1.01, 1.07, 1.03}; // p of about 0.03
    const std::vector<double> none{1.01, 0.99, 1.02, 0.98, 1};
    EXPECT_EQ(judged(measured_of("ttft_p50", {kFive, times(kFive, noise)}), "ttft_p50").verdict, Verdict::kWorse);
    const Measured three = measured_of("ttft_p50", {kFive, times(kFive, noise), times(kFive, none)});
    const Difference d = judged(three, "ttft_p50");
    EXPECT_NEAR(d.corrected, 2 * d.p, 1e-12);
    EXPECT_EQ(d.verdict, Verdict::kNoDifference);
    EXPECT_GT(d.low, 0); // the interval is that of one metric by itself
}

TEST(Comparison, SaysWhichDifferenceItWouldHaveSeen) {
    const std::vector<double> none{1.01, 0.99, 1.02, 0.98, 1};
    const auto results = judge(measured_of("ttft_p50", {kFive, times(kFive, none)}), question_of(0, {"ttft_p50"}));
    const Difference& d = difference_of(results[1].comparison, "ttft_p50");
    std::vector<double> logs;
    for (const double f : none) logs.push_back(std::log(f));
    EXPECT_EQ(d.verdict, Verdict::kNoDifference);
    EXPECT_NEAR(d.detectable,
                value_of(results[0].metrics, "ttft_p50") *
                    std::expm1(detectable_errors(4, 0.05, 0.9) * estimate_of(logs).error / mean_deviation(4)),
                1e-9);
}

TEST(Comparison, GivesNoVerdictOnFewRepeats) {
    const std::vector<double> four{100, 200, 150, 120};
    const Difference d = judged(measured_of("ttft_p50", {four, times(four, {2, 2.01})}), "ttft_p50");
    EXPECT_EQ(d.verdict, Verdict::kTooFewRepeats);
    EXPECT_GT(d.low, 0); // the interval is there all the same
}

TEST(Comparison, NeedsTheRepeatsOfThePrimaryMetricThatVariesMost) {
    const auto needed = [](const Measured& m, const Question& q, double effect) {
        return repeats_needed(m, q, effect).repeats;
    };
    const std::vector<double> quiet{1.001, 0.999, 1, 1.001, 0.999}, loud{1.1, 0.9, 1, 1.05, 0.95};
    const Question q = question_of(0, {"ttft_p50"});
    EXPECT_EQ(needed(measured_of("ttft_p50", {kFive, times(kFive, quiet)}), q, 0.05), 5);
    const double one = needed(measured_of("ttft_p50", {kFive, times(kFive, loud)}), q, 0.05);
    EXPECT_GT(one, 20);
    // Where the variant is on average does not matter, only how its repeats differ.
    auto slower = times(kFive, loud);
    for (double& v : slower) v *= 3;
    EXPECT_EQ(needed(measured_of("ttft_p50", {kFive, slower}), q, 0.05), one);
    // More verdicts need more; shares count in points, other counts not at all.
    EXPECT_GT(needed(measured_of("ttft_p50", {kFive, times(kFive, loud), kFive}), q, 0.05), one);
    const Question share = question_of(0, {"goodput_share"}), count = question_of(0, {"preemptions"});
    const auto shares = measured_of("goodput_share", {{50, 60, 50, 60, 50}, {50, 50, 60, 60, 70}});
    EXPECT_GT(needed(shares, share, 0.05), 20);
    EXPECT_EQ(needed(measured_of("preemptions", {{0, 9, 0, 9, 0}, {0, 0, 9, 9, 0}}), count, 0.05), 5);
    const Question both = question_of(0, {"ttft_p50", "preemptions", "e2e_p50"});
    EXPECT_EQ(repeats_needed(measured_of("ttft_p50", {kFive, times(kFive, loud)}), both, 0.05).left_out,
              (std::vector<size_t>{both.primary[1], both.primary[2]}))
        << "a count, and one that has no numbers";
}

TEST(Comparison, TakesTheSpreadOfTheFirstRepeatsThatAreValid) {
    std::vector<double> base(12, 100), other{101, 103, kNoValue, 102, 104, 99, 102, 102, 102, 102, 102, 102};
    Question q = question_of(0, {"ttft_p50"});
    q.first_stage = 6; // of which one is invalid
    const auto d = difference_of(judge(measured_of("ttft_p50", {base, other}), q)[1].comparison, "ttft_p50");
    std::vector<double> logs;
    for (const double v : other)
        if (!std::isnan(v)) logs.push_back(std::log(v / 100));
    const Interval expected = interval_of(two_stage_estimate(logs, 5), kAlpha);
    EXPECT_NEAR(d.low, 100 * std::expm1(expected.low), 1e-9);
}

TEST(Comparison, KnowsNoSpreadWhereTheFirstStageHasOneValue) {
    std::vector<double> base(12, 100), other{101, 103, 99, 102, 104, 98, 102, 101, 102, 103, 102, 102};
    for (const size_t r : {1, 2, 3, 4, 5}) other[r] = kNoValue;
    Question q = question_of(0, {"ttft_p50"});
    q.first_stage = 6;
    for (const size_t without : {size_t{1}, size_t{0}}) {
        const auto results = judge(measured_of("ttft_p50", {base, other}), q);
        const Difference& d = difference_of(results[1].comparison, "ttft_p50");
        EXPECT_EQ(results[1].comparison.independent, 6 + without);
        EXPECT_EQ(d.verdict, Verdict::kTooFewRepeats);
        EXPECT_FALSE(std::isnan(d.value));
        EXPECT_TRUE(std::isnan(d.low) && std::isnan(d.p) && std::isnan(d.detectable));
        EXPECT_THAT(claim_of(measured_of("ttft_p50", {base, other}), results, {"a", "b"}, q).sentence,
                    ::testing::HasSubstr("or of the first ones fewer than 2, are valid"));
        other[0] = kNoValue;
    }
}

TEST(Comparison, CountsIdenticalRepeatsOnce) {
    Measured m = measured_of("ttft_p50", {std::vector<double>(40, 100.0), std::vector<double>(40, 99.99)});
    m.timings = {std::vector<uint64_t>(40, 1), std::vector<uint64_t>(40, 2)};
    const auto results = judge(m, question_of(0, {"ttft_p50"}));
    EXPECT_EQ(results[1].comparison.independent, 1u);
    EXPECT_EQ(difference_of(results[1].comparison, "ttft_p50").verdict, Verdict::kTooFewRepeats);
    EXPECT_EQ(repeats_seen_before(m).size(), 39u);
    m.timings[1][7] = 3; // of two runs one is another: a repeat of its own
    EXPECT_EQ(judge(m, question_of(0, {"ttft_p50"}))[1].comparison.independent, 2u);
    EXPECT_THAT(repeats_seen_before(m), ::testing::Not(::testing::Contains(7u)));
}

TEST(Comparison, CountsRepeatsThatOverlapAsTheFewThatDoNot) {
    const Measured m = measured_of("ttft_p50", {kFive, times(kFive, {1.09, 1.11, 1.1, 1.08, 1.12})});
    Question q = question_of(0, {"ttft_p50"});
    q.windows = {{.rows = 20, .starts = {0, 10, 20, 30, 40}}};
    const Comparison c = judge(m, q)[1].comparison;
    EXPECT_EQ(c.independent, 3u);
    EXPECT_EQ(difference_of(c, "ttft_p50").verdict, Verdict::kTooFewRepeats);
}

// Eight windows, five of them with no row in common. The three repeats that have no value are among these five.
TEST(Comparison, CountsWhatOverlapsAmongTheRepeatsWithAValue) {
    std::vector<double> base{100, 200, 150, 120, 180, 110, 130, 170};
    std::vector<double> other = times(base, {1.09, 1.11, 1.1, 1.08, 1.12, 1.07, 1.1, 1.13});
    Question q = question_of(0, {"ttft_p50"});
    q.windows = {{.rows = 20, .starts = {0, 5, 20, 10, 40, 15, 60, 80}, .independent = 5}};
    const Comparison all = judge(measured_of("ttft_p50", {base, other}), q)[1].comparison;
    EXPECT_EQ(all.independent, 5u);
    EXPECT_EQ(difference_of(all, "ttft_p50").verdict, Verdict::kWorse);
    for (const size_t r : {4, 6, 7}) other[r] = kNoValue;
    const Comparison left = judge(measured_of("ttft_p50", {base, other}), q)[1].comparison; // at 0, 5, 20, 10, 15
    EXPECT_EQ(left.independent, 2u);
    EXPECT_EQ(difference_of(left, "ttft_p50").verdict, Verdict::kTooFewRepeats);
    q.windows.push_back({.rows = 100, .starts = {0, 1, 2, 3, 4, 5, 6, 7}, .independent = 1}); // of another variant
    EXPECT_EQ(judge(measured_of("ttft_p50", {base, other}), q)[1].comparison.independent, 1u);
}

TEST(Comparison, TakesRoundingForNoDifference) {
    std::vector<double> other = kFive;
    for (double& v : other) v *= 1 + 1e-15;
    const Difference d = judged(measured_of("ttft_p50", {kFive, other}), "ttft_p50");
    EXPECT_EQ(d.value, 0);
    EXPECT_EQ(d.verdict, Verdict::kNoDifference);
}

TEST(Comparison, DifferencesThatAreAllTheSameAreNoProofByTheirSpread) {
    const std::vector<double> none(5, 0.0), three(5, 3.0), ten_none(10, 0.0), ten_three(10, 3.0);
    const Difference few = judged(measured_of("preemptions", {none, three}), "preemptions");
    EXPECT_EQ(few.verdict, Verdict::kNoDifference);
    EXPECT_TRUE(std::isnan(few.low) && std::isnan(few.high)) << "an interval without width";
    EXPECT_TRUE(std::isnan(few.detectable));
    EXPECT_EQ(judged(measured_of("preemptions", {ten_none, ten_three}), "preemptions").verdict, Verdict::kWorse);
    const Difference ratio = judged(measured_of("ttft_p50", {kFive, times(kFive, {0.9999})}), "ttft_p50");
    EXPECT_EQ(ratio.verdict, Verdict::kNoDifference) << "the same but for rounding";
    EXPECT_TRUE(std::isnan(ratio.low));
}

TEST(Comparison, KnowsAVariantThatChangedNothing) {
    Measured m = measured_of("ttft_p50", {kFive, kFive, kFive});
    m.timings = {{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}, {1, 2, 3, 4, 6}};
    const auto results = judge(m, question_of(0, {"ttft_p50"}));
    EXPECT_TRUE(results[1].comparison.unchanged);
    EXPECT_FALSE(results[2].comparison.unchanged);
}

TEST(Comparison, IsOfTheRepeatsThatEveryVariantHas) {
    std::vector<double> six{100, 200, 150, 120, 180, 1e6}, part = six;
    part[5] = kNoValue;
    const auto results = judge(measured_of("ttft_p50", {six, part}), question_of(0, {"ttft_p50"}));
    EXPECT_EQ(value_of(results[0].metrics, "ttft_p50"), value_of(results[1].metrics, "ttft_p50"));
    EXPECT_EQ(results[1].comparison.independent, 5u);
}

TEST(Comparison, IsNotOfOtherRepeatsBecauseAVariantNeverHasAValue) {
    std::vector<double> six{100, 200, 150, 120, 180, 1e6}, part = times(six, {1.09, 1.11, 1.1, 1.08, 1.12});
    part[5] = kNoValue;
    const std::vector<double> none(6, kNoValue);
    const auto results = judge(measured_of("ttft_p50", {six, none, part}), question_of(0, {"ttft_p50"}));
    const Difference& d = difference_of(results[2].comparison, "ttft_p50");
    EXPECT_NEAR(value_of(results[2].metrics, "ttft_p50") - value_of(results[0].metrics, "ttft_p50"), d.value, 1e-9);
    EXPECT_LT(value_of(results[0].metrics, "ttft_p50"), 200) << "without the one that the other lacks";
    EXPECT_EQ(d.verdict, Verdict::kWorse);
    EXPECT_TRUE(std::isnan(value_of(results[1].metrics, "ttft_p50")));
    EXPECT_EQ(difference_of(results[1].comparison, "ttft_p50").verdict, Verdict::kNone);
}

}  // namespace
}  // namespace patchbay::experiment::comparison_test
