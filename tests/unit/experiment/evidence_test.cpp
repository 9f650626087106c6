// What a comparison may not call a difference, and what it has to: faults that such harnesses have.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "made_up_runs.hpp"

namespace patchbay::experiment::evidence_test {
namespace {

constexpr size_t kRepeats = 10;

// Of one metric; noise in logarithms, of each run by itself.
Measured noisy(const std::string& metric, size_t variants, size_t repeats, double noise, std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    Measured m;
    std::vector<double> workload(repeats);
    for (double& w : workload) w = 0.3 * normal(random);
    for (size_t v = 0; v < variants; ++v) {
        auto& of_variant = m.values.emplace_back(metric_infos().size(), std::vector<double>(repeats, kNoValue));
        auto& values = of_variant[metric_named(metric).value()];
        for (size_t r = 0; r < repeats; ++r) values[r] = 60 * std::exp(workload[r] + noise * normal(random));
    }
    return m;
}

std::vector<RunSummary> heavy_runs(double slower, std::mt19937_64& random) {
    constexpr uint32_t kRequests = 150;
    std::normal_distribution<double> normal;
    std::vector<RunSummary> out;
    for (uint32_t repeat = 0; repeat < kRepeats; ++repeat) {
        std::vector<double> size_ms;
        for (uint32_t i = 0; i < kRequests; ++i) size_ms.push_back(50 * std::exp(normal(random)));
        for (size_t variant = 0; variant < 2; ++variant) {
            const double speed = (variant == 1 ? slower : 1) * std::exp(0.02 * normal(random));
            std::vector<RequestRecord> requests;
            for (uint32_t i = 0; i < kRequests; ++i) {
                RequestRecord& r = requests.emplace_back(request(20 * i, {20 * i + 1}));
                r.token_ns[0] = r.arrival_ns + static_cast<uint64_t>(1e6 * speed * size_ms[i]);
                r.finish_ns = r.token_ns[0];
            }
            out.push_back(summary_of(run_of(std::move(requests), 60'000, variant, repeat), {}));
        }
    }
    return out;
}

TEST(Evidence, FiveDifferencesOfOneSignMayBeChance) {
    Measured m;
    for (const std::vector<double>& values : {std::vector<double>(5, 100), {101, 103, 110, 100.5, 112}}) {
        m.values.emplace_back(metric_infos().size(), std::vector<double>(5, kNoValue));
        m.values.back()[metric_named("ttft_p50").value()] = values;
    }
    const Difference d = difference_of(judge(m, question_of(0, {"ttft_p50"}))[1].comparison, "ttft_p50");
    EXPECT_GT(d.value, 0);
    EXPECT_LT(d.low, 0);
    EXPECT_EQ(d.verdict, Verdict::kNoDifference);
}

// Of a bootstrap of five runs 15 % of these intervals leave out 0, of ten 9 %.
TEST(Evidence, MetricsOfRunsRejectNoMoreOftenThanTheirLevel) {
    constexpr int kExperiments = 2000;
    for (const size_t repeats : {size_t{5}, kRepeats}) {
        std::mt19937_64 random(1);
        int rejected = 0;
        for (int i = 0; i < kExperiments; ++i) {
            const Measured m = noisy("output_throughput", 2, repeats, 0.02, random);
            const Difference d =
                difference_between(m, question_of(0, {"ttft_p50"}), 1, 0, metric_named("output_throughput").value());
            rejected += d.low > 0 || d.high < 0;
        }
        EXPECT_LE(rejected, 0.06 * kExperiments) << repeats;
        EXPECT_GE(rejected, 0.04 * kExperiments) << repeats << ", which would be of no use";
    }
}

// Requests of a repeat are the same for both variants, however much their sizes differ.
TEST(Evidence, P99OfRequestsShowsFivePercent) {
    constexpr int kExperiments = 50;
    std::mt19937_64 random(1);
    const Question q = question_of(0, {"ttft_p99", "ttft_p50", "e2e_p50", "e2e_p99", "e2e_mean", "ttft_mean"});
    int found = 0, imagined = 0;
    for (int i = 0; i < kExperiments; ++i) {
        const auto verdict = [&](double slower) {
            const Measured m = measured(heavy_runs(slower, random), 2);
            return difference_of(judge(m, q)[1].comparison, "ttft_p99").verdict;
        };
        found += verdict(1.05) == Verdict::kWorse;
        imagined += verdict(1) != Verdict::kNoDifference;
    }
    EXPECT_GE(found, 0.9 * kExperiments);
    EXPECT_LE(imagined, 0.06 * kExperiments);
}

// Taken by itself, the best of 15 equal variants seems better than the baseline in a quarter of all experiments.
TEST(Evidence, TheVariantThatLooksBestOfManyIsRarelyCalledBetter) {
    constexpr int kExperiments = 200;
    std::vector<std::string> names;
    for (size_t v = 0; v < 16; ++v) names.push_back("v" + std::to_string(v));
    const Question q = question_of(0, {"output_throughput"});
    std::mt19937_64 random(1);
    int alone = 0, claimed = 0;
    for (int i = 0; i < kExperiments; ++i) {
        const Measured m = noisy("output_throughput", 16, kRepeats, 0.02, random);
        const auto results = judge(m, q);
        const auto seems_better = [](const VariantResult& r) {
            return !r.comparison.metrics.empty() && difference_of(r.comparison, "output_throughput").low > 0;
        };
        alone += std::ranges::any_of(results, seems_better);
        claimed += claim_of(m, results, names, q).claims;
    }
    EXPECT_GE(alone, 0.15 * kExperiments);
    EXPECT_LE(claimed, 0.06 * kExperiments);
}

// Beside the baseline all ten repeats of the best one count, beside another variant three.
TEST(Evidence, AWinnerTakesFiveIndependentRepeatsBesideEachOther) {
    const std::vector<std::vector<double>> three = {{}, {100, 101, 102}, {110, 111, 112.5}};
    Measured m;
    const size_t metric = metric_named("ttft_p50").value();
    for (size_t v = 0; v < 3; ++v) {
        auto& values = m.values.emplace_back(metric_infos().size(), std::vector<double>(kRepeats, kNoValue))[metric];
        auto& timings = m.timings.emplace_back();
        for (size_t r = 0; r < kRepeats; ++r) {
            values[r] = v == 0 ? 150 + static_cast<double>(r) : three[v][r % 3];
            timings.push_back(v == 0 ? r : r % 3);
        }
    }
    const Question q = question_of(0, {"ttft_p50"});
    const auto results = judge(m, q);
    EXPECT_EQ(difference_of(results[1].comparison, "ttft_p50").verdict, Verdict::kBetter);
    EXPECT_LT(difference_between(m, q, 1, 2, metric).p, 0.001);
    const Claim claim = claim_of(m, results, {"base", "best", "other"}, q);
    EXPECT_EQ(claim.winner, "");
    EXPECT_NE(claim.sentence.find("; other (111 ms) has too few independent repeats beside it, so no winner is named"),
              std::string::npos)
        << claim.sentence;
}

// The metric of the sentence is the file's first, not the one that looks best.
TEST(Evidence, ADifferenceInAMetricThatWasNotNamedMakesNoClaim) {
    auto slow = runs_with(70, 8, 0), fast = runs_with(50, 8, 1);
    for (auto* runs : {&slow, &fast})
        for (RunRecord& run : *runs)
            for (RequestRecord& r : run.requests) r.finish_ns = r.arrival_ns + 200 * kMs + run.repeat * 1000;
    const Conclusion c =
        conclude(all_runs(slow, fast), {{"slow", {}}, {"fast", {}}}, question_of(0, {"e2e_mean"}), {});
    const Difference& other = difference_of(c.results[1].comparison, "ttft_p50");
    EXPECT_LT(other.value, -10);
    EXPECT_LT(other.p, 0.05);
    EXPECT_EQ(c.sentence, "no variant is shown to have a better E2E mean than slow");
    EXPECT_FALSE(c.claims);
}

}  // namespace
}  // namespace patchbay::experiment::evidence_test
