#include "experiment/statistics.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "experiment/conclusion.hpp"

namespace patchbay::experiment {
namespace {

using ::testing::HasSubstr;
constexpr uint64_t kMs = 1'000'000;

RequestRecord request(uint64_t arrival_ms, std::vector<uint64_t> tokens_ms, uint32_t prompt = 10) {
    RequestRecord r;
    r.arrival_ns = arrival_ms * kMs;
    r.prompt_tokens = prompt;
    for (const uint64_t t : tokens_ms) r.token_ns.push_back(t * kMs);
    r.output.assign(tokens_ms.size(), 1);
    r.finish_ns = tokens_ms.empty() ? r.arrival_ns : r.token_ns.back();
    r.finish = engine::FinishReason::kLength;
    return r;
}

RunRecord run_of(std::vector<RequestRecord> requests, uint64_t duration_ms, size_t variant = 0, uint32_t repeat = 0) {
    RunRecord run;
    run.variant = variant;
    run.repeat = repeat;
    run.requests = std::move(requests);
    run.duration_ns = duration_ms * kMs;
    return run;
}

double value_of(const std::vector<double>& values, const std::string& name) {
    for (size_t i = 0; i < values.size(); ++i)
        if (metric_infos()[i].name == name) return values[i];
    ADD_FAILURE() << "no metric " << name;
    return 0;
}

const Difference& difference_of(const Comparison& c, const std::string& name) {
    size_t i = 0;
    while (metric_infos()[i].name != name) ++i;
    return c.metrics[i];
}

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
    std::vector<double> v{40, 10, 30, 20};
    EXPECT_DOUBLE_EQ(quantile(v, 0.5), 25);
    EXPECT_DOUBLE_EQ(quantile(v, 0), 10);
    EXPECT_DOUBLE_EQ(quantile(v, 1), 40);
    EXPECT_DOUBLE_EQ(quantile(v, 0.9), 37);
    std::vector<double> one{7}, none;
    EXPECT_DOUBLE_EQ(quantile(one, 0.99), 7);
    EXPECT_TRUE(std::isnan(quantile(none, 0.5)));
}

TEST(Latencies, AreCountedFromArrivalAndBetweenTokens) {
    const Latencies l = latencies_of(request(100, {150, 170, 210}));
    EXPECT_DOUBLE_EQ(l.ttft, 50);
    EXPECT_DOUBLE_EQ(l.tpot, 30);
    EXPECT_DOUBLE_EQ(l.e2e, 110);
    EXPECT_THAT(l.gaps, ::testing::ElementsAre(20, 40));
}

TEST(Latencies, OfASingleTokenHaveNoTpotAndNoGaps) {
    const Latencies l = latencies_of(request(100, {150}));
    EXPECT_DOUBLE_EQ(l.ttft, 50);
    EXPECT_TRUE(std::isnan(l.tpot));
    EXPECT_TRUE(l.gaps.empty());
    EXPECT_TRUE(std::isnan(latencies_of(request(100, {})).ttft));
}

TEST(Objective, IsMetOnlyWhereEachBoundHolds) {
    const RequestRecord r = request(0, {50, 80}); // TTFT 50, TPOT 30, E2E 80
    EXPECT_TRUE(meets({50, 30, 80}, r));
    EXPECT_FALSE(meets({49, 30, 80}, r));
    EXPECT_FALSE(meets({50, 29, 80}, r));
    EXPECT_FALSE(meets({50, 30, 79}, r));
    EXPECT_TRUE(meets({{}, 1, {}}, request(0, {500}))); // a single token has no TPOT to break
    RequestRecord failed = r;
    failed.finish = engine::FinishReason::kError;
    EXPECT_FALSE(meets({1000, {}, {}}, failed));
}

TEST(Summary, PoolsRequestsAndAveragesRatesOverRuns) {
    // Run 1: 2 s, 3 tokens of 20 prompt tokens; run 2: 1 s, 2 tokens of 10.
    RunRecord a = run_of({request(0, {100, 200}), request(0, {300})}, 2000), b = run_of({request(0, {400, 500})}, 1000);
    a.kv_mean = 0.25;
    b.kv_mean = 0.75;
    a.kv_max = b.kv_max = 1;
    b.requests[0].preemptions = 3;
    const RunRecord* runs[] = {&a, &b};
    const auto v = summarise(runs, {200, {}, {}});
    EXPECT_DOUBLE_EQ(value_of(v, "output_throughput"), (3 / 2.0 + 2 / 1.0) / 2);
    EXPECT_DOUBLE_EQ(value_of(v, "total_throughput"), (23 / 2.0 + 12 / 1.0) / 2);
    EXPECT_DOUBLE_EQ(value_of(v, "request_throughput"), 1);
    EXPECT_NEAR(value_of(v, "ttft_mean"), 800.0 / 3, 1e-9);
    EXPECT_DOUBLE_EQ(value_of(v, "ttft_p50"), 300);
    EXPECT_DOUBLE_EQ(value_of(v, "itl_mean"), 100);
    EXPECT_DOUBLE_EQ(value_of(v, "e2e_p50"), 300);
    EXPECT_NEAR(value_of(v, "goodput_share"), 100.0 / 3, 1e-9);
    EXPECT_DOUBLE_EQ(value_of(v, "goodput_rate"), 0.25);
    EXPECT_DOUBLE_EQ(value_of(v, "kv_mean"), 50);
    EXPECT_DOUBLE_EQ(value_of(v, "preemptions"), 1.5);
}

TEST(Summary, HasNoValueWhereThereIsNoData) {
    for (const double v : summarise({}, {})) EXPECT_TRUE(std::isnan(v));
    const RunRecord empty = run_of({}, 0);
    const RunRecord* runs[] = {&empty};
    const auto v = summarise(runs, {});
    EXPECT_TRUE(std::isnan(value_of(v, "ttft_p99")));
    EXPECT_TRUE(std::isnan(value_of(v, "output_throughput")));
    EXPECT_TRUE(std::isnan(value_of(v, "goodput_share")));
}

// `count` runs whose requests take about `ttft_ms`, with the same spread in every set.
std::vector<RunRecord> runs_with(uint64_t ttft_ms, uint32_t count, size_t variant) {
    std::vector<RunRecord> runs;
    for (uint32_t r = 0; r < count; ++r) {
        std::vector<RequestRecord> requests;
        for (uint64_t i = 0; i < 20; ++i)
            requests.push_back(request(i, {i + ttft_ms + (i * 7 + r * 3) % 10, i + ttft_ms + 40}));
        runs.push_back(run_of(std::move(requests), 1000, variant, r));
    }
    return runs;
}

std::vector<const RunRecord*> pointers(const std::vector<RunRecord>& runs) {
    std::vector<const RunRecord*> out;
    for (const RunRecord& r : runs) out.push_back(&r);
    return out;
}

TEST(Comparison, OfARunWithItselfShowsNoDifference) {
    const auto runs = runs_with(50, 5, 0);
    const auto p = pointers(runs);
    const Comparison c = compare(p, p, {}, 1);
    const Difference& d = difference_of(c, "ttft_mean");
    EXPECT_DOUBLE_EQ(d.value, 0);
    EXPECT_DOUBLE_EQ(d.low, 0);
    EXPECT_DOUBLE_EQ(d.high, 0);
    EXPECT_EQ(d.verdict, Verdict::kNoDifference);
    EXPECT_EQ(c.pairs, 100u);
    EXPECT_DOUBLE_EQ(c.same_output, 1);
}

TEST(Comparison, FindsAConstantShiftAndItsDirection) {
    const auto base = runs_with(50, 5, 0), slow = runs_with(70, 5, 1);
    const Comparison c = compare(pointers(slow), pointers(base), {}, 1);
    const Difference& d = difference_of(c, "ttft_mean");
    EXPECT_NEAR(d.value, 20, 1e-9); // paired: the spread cancels
    EXPECT_NEAR(d.low, 20, 1e-9);
    EXPECT_NEAR(d.high, 20, 1e-9);
    EXPECT_EQ(d.verdict, Verdict::kWorse);
    EXPECT_EQ(difference_of(compare(pointers(base), pointers(slow), {}, 1), "ttft_mean").verdict, Verdict::kBetter);
}

TEST(Comparison, IntervalCoversTheSpreadOfPairedDifferences) {
    // Differences of +10 and −10 in turn: a mean of 0 that is uncertain by about 10/√n.
    auto base = runs_with(50, 6, 0), other = base;
    for (RunRecord& r : other)
        for (size_t i = 0; i < r.requests.size(); ++i) r.requests[i].token_ns[0] += i % 2 ? 10 * kMs : -10 * kMs;
    const Difference d = difference_of(compare(pointers(other), pointers(base), {}, 1), "ttft_mean");
    EXPECT_NEAR(d.value, 0, 1e-9);
    EXPECT_NEAR(d.high, 1.96 * 10 / std::sqrt(100.0), 0.4); // 5 of 6 repeats of 20 are drawn
    EXPECT_NEAR(d.low, -d.high, 0.4);
    EXPECT_EQ(d.verdict, Verdict::kNoDifference);
}

TEST(Comparison, IsTheSameForTheSameSeed) {
    auto base = runs_with(50, 5, 0), other = runs_with(51, 5, 1);
    for (size_t i = 0; i < 20; ++i) other[2].requests[i].token_ns[0] += i * kMs;
    const auto interval = [&](uint64_t seed) {
        return difference_of(compare(pointers(other), pointers(base), {}, seed), "ttft_mean");
    };
    EXPECT_EQ(interval(1).high, interval(1).high);
    EXPECT_NE(interval(1).high, interval(2).high);
}

TEST(Comparison, GivesNoVerdictOnFewRepeats) {
    const auto base = runs_with(50, 4, 0), slow = runs_with(70, 4, 1);
    EXPECT_EQ(difference_of(compare(pointers(slow), pointers(base), {}, 1), "ttft_mean").verdict,
              Verdict::kTooFewRepeats);
    EXPECT_EQ(compare({}, {}, {}, 1).metrics.front().verdict, Verdict::kNone);
}

TEST(Comparison, CountsRequestsWhoseOutputIsTheBaselines) {
    const auto base = runs_with(50, 5, 0);
    auto other = base;
    for (RunRecord& r : other) r.requests[0].output[1] = 99;
    EXPECT_DOUBLE_EQ(compare(pointers(other), pointers(base), {}, 1).same_output, 0.95);
}

std::vector<RunRecord> all_runs(std::vector<RunRecord> a, const std::vector<RunRecord>& b) {
    a.insert(a.end(), b.begin(), b.end());
    for (uint32_t i = 0; i < a.size(); ++i) a[i].position = i;
    return a;
}

TEST(Conclusion, NamesTheVariantWithTheBestHeadlineMetric) {
    const Conclusion c =
        conclude(all_runs(runs_with(70, 5, 0), runs_with(50, 5, 1)), {{"slow", {}}, {"fast", {}}}, 0, {}, 1);
    EXPECT_EQ(c.winner, "fast");
    EXPECT_THAT(c.sentence, HasSubstr("fast has the best E2E mean: 90.0 ms against 110 ms of slow"));
    EXPECT_TRUE(c.notices.empty());
}

TEST(Conclusion, WarnsWhereTheWinnerSaysSomethingElse) {
    auto fast = runs_with(50, 5, 1);
    for (RunRecord& r : fast) r.requests[0].output[1] = 99;
    const Conclusion c = conclude(all_runs(runs_with(70, 5, 0), fast), {{"slow", {}}, {"fast", {}}}, 0, {}, 1);
    EXPECT_THAT(c.sentence, HasSubstr("outputs differ from those of slow in 5.00 % of the requests"));
}

TEST(Conclusion, NamesAWinnerOnlyWhereTheNextOneIsShownToBeWorse) {
    const std::vector<Contestant> three{{"slow", {}}, {"fast", {}}, {"faster", {}}};
    const auto two = all_runs(runs_with(70, 5, 0), runs_with(50, 5, 1));
    const Conclusion apart = conclude(all_runs(two, runs_with(40, 5, 2)), three, 0, {}, 1);
    EXPECT_EQ(apart.winner, "faster");
    EXPECT_THAT(apart.sentence, HasSubstr("against 110 ms of slow (difference"));
    EXPECT_THAT(apart.sentence, HasSubstr("and 90.0 ms of fast (difference"));
    const Conclusion tied = conclude(all_runs(two, runs_with(50, 5, 2)), three, 0, {}, 1);
    EXPECT_EQ(tied.winner, "");
    EXPECT_THAT(tied.sentence, HasSubstr("fast has a better E2E mean than slow"));
    EXPECT_THAT(tied.sentence, HasSubstr("no winner is named, as faster with 90.0 ms is not shown to be worse"));
}

TEST(Conclusion, CountsTheSameRepeatsForEveryVariant) {
    auto slow = runs_with(70, 6, 0), fast = runs_with(50, 6, 1);
    fast[5].end = RunEnd::kInterrupted;
    for (RequestRecord& r : slow[5].requests) r.finish_ns += 60'000'000'000;
    const Conclusion c = conclude(all_runs(slow, fast), {{"slow", {}}, {"fast", {}}}, 0, {}, 1);
    EXPECT_DOUBLE_EQ(value_of(c.results[0].metrics, "e2e_mean"), 110);
    EXPECT_DOUBLE_EQ(difference_of(c.results[1].comparison, "e2e_mean").value, -20);
}

TEST(Conclusion, WithoutARepeatThatAllHaveShowsWhatEachHas) {
    auto slow = runs_with(70, 1, 0), fast = runs_with(50, 1, 1);
    slow[0].end = RunEnd::kInterrupted;
    const Conclusion c = conclude(all_runs(slow, fast), {{"slow", {}}, {"fast", {}}}, 0, {}, 1);
    EXPECT_TRUE(std::isnan(value_of(c.results[0].metrics, "e2e_mean")));
    EXPECT_DOUBLE_EQ(value_of(c.results[1].metrics, "e2e_mean"), 90);
}

TEST(Conclusion, NamesNoWinnerWhereConfigurationsDifferInMoreThanDeclared) {
    const Conclusion c = conclude(all_runs(runs_with(70, 5, 0), runs_with(50, 5, 1)),
                                  {{"slow", {}}, {"fast", {"automatic.threads"}}}, 0, {}, 1);
    EXPECT_EQ(c.winner, "");
    EXPECT_THAT(c.sentence, HasSubstr("differ in more than the declared factors"));
    EXPECT_THAT(c.notices,
                ::testing::ElementsAre(
                    HasSubstr("variant 'fast' differs from the baseline in more than it declares: automatic.threads")));
}

TEST(Conclusion, NamesNoWinnerWhereARunIsInvalidAndSaysWhich) {
    auto fast = runs_with(50, 6, 1);
    fast[2].faults.push_back("3 sampler faults");
    const Conclusion c = conclude(all_runs(runs_with(70, 6, 0), fast), {{"slow", {}}, {"fast", {}}}, 0, {}, 1);
    EXPECT_EQ(c.winner, "");
    EXPECT_THAT(c.notices, ::testing::ElementsAre("run 9 (fast, repeat 3) is invalid: 3 sampler faults"));
    EXPECT_EQ(c.results[1].comparison.repeats, 5u); // the invalid one is left out, on both sides
}

TEST(Conclusion, NamesNoWinnerOnFewRepeatsOrWithoutADifference) {
    EXPECT_THAT(
        conclude(all_runs(runs_with(70, 2, 0), runs_with(50, 2, 1)), {{"slow", {}}, {"fast", {}}}, 0, {}, 1).sentence,
        HasSubstr("fewer than 5 valid repeats"));
    EXPECT_THAT(conclude(all_runs(runs_with(50, 5, 0), runs_with(50, 5, 1)), {{"a", {}}, {"b", {}}}, 0, {}, 1).sentence,
                HasSubstr("no variant is shown to have a better E2E mean than a"));
}

TEST(Shown, GivesNumbersAReadablePrecision) {
    EXPECT_EQ(shown(1234567.8), "1,234,568");
    EXPECT_EQ(shown(-1234), "-1,234");
    EXPECT_EQ(shown(123.4), "123");
    EXPECT_EQ(shown(12.34), "12.3");
    EXPECT_EQ(shown(1.234), "1.23");
    EXPECT_EQ(shown(0.01234), "0.012");
    EXPECT_EQ(shown(0), "0");
    EXPECT_EQ(shown(kNoValue), "–");
}

}  // namespace
}  // namespace patchbay::experiment
