#include "experiment/run_metrics.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "experiment/overload.hpp"
#include "made_up_runs.hpp"

namespace patchbay::experiment::run_metrics_test {
namespace {

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

TEST(RunMetrics, AreOfTheRequestsOfOneRun) {
    RunRecord run = run_of({request(0, {100, 200}), request(0, {300})}, 2000); // 3 tokens of 20 prompt tokens in 2 s
    run.numbers = {{"kv_mean", 25}, {"kv_max", 100}, {"plugin.scheduler.depth", 7}};
    run.requests[0].preemptions = 3;
    run.requests[0].cached_tokens = 5; // of 20 prompt tokens of both
    const auto v = metrics_of(run, {200, {}, {}}, counted_span(run, {}));
    EXPECT_DOUBLE_EQ(value_of(v, "output_throughput"), 1.5);
    EXPECT_DOUBLE_EQ(value_of(v, "total_throughput"), 11.5);
    EXPECT_DOUBLE_EQ(value_of(v, "request_throughput"), 1);
    EXPECT_DOUBLE_EQ(value_of(v, "ttft_mean"), 200);
    EXPECT_DOUBLE_EQ(value_of(v, "ttft_p50"), 200);
    EXPECT_DOUBLE_EQ(value_of(v, "itl_mean"), 100);
    EXPECT_DOUBLE_EQ(value_of(v, "e2e_p50"), 250);
    EXPECT_DOUBLE_EQ(value_of(v, "normalised_mean"), 200) << "200 ms of two tokens, 300 ms of one";
    EXPECT_DOUBLE_EQ(value_of(v, "goodput_share"), 50);
    EXPECT_DOUBLE_EQ(value_of(v, "goodput_rate"), 0.5);
    EXPECT_DOUBLE_EQ(value_of(v, "kv_mean"), 25);
    EXPECT_DOUBLE_EQ(value_of(v, "prefix_hit_share"), 25);
    EXPECT_DOUBLE_EQ(value_of(v, "preemptions"), 3);
}

TEST(RunMetrics, HaveNoValueWhereThereIsNoData) {
    const auto v = metrics_of(run_of({}, 0), {}, {0, 0});
    for (const char* name : {"ttft_p99", "output_throughput", "goodput_share", "kv_mean"})
        EXPECT_TRUE(std::isnan(value_of(v, name))) << name;
}

TEST(RunMetrics, OfAWindowAreOfWhatArrivesInItAndOfWhatHappensInIt) {
    // Arrivals at 0, 100, …, 900 ms, so that 20 % to 80 % of them are 180 to 720 ms; each has its two tokens 50 and 100
    // ms later.
    std::vector<RequestRecord> requests;
    for (uint64_t i = 0; i < 10; ++i) requests.push_back(request(100 * i, {100 * i + 50, 100 * i + 100}));
    requests[0].token_ns[0] = 1; // long before the window
    requests[0].finish_ns = 10'000 * kMs;
    const RunRecord run = run_of(std::move(requests), 10'000);
    const TimeSpan span = counted_span(run, CountingWindow{{0.2, true}, {0.8, true}});
    EXPECT_EQ(span.from_ns, 180 * kMs);
    EXPECT_EQ(span.until_ns, 720 * kMs);
    const auto v = metrics_of(run, {60, {}, {}}, span);
    EXPECT_DOUBLE_EQ(value_of(v, "ttft_p99"), 50) << "of the requests at 200 to 700 ms";
    EXPECT_DOUBLE_EQ(value_of(v, "e2e_p99"), 100);
    EXPECT_DOUBLE_EQ(value_of(v, "output_throughput"), 11 / 0.54) << "tokens at 200, 250, …, 700 ms";
    EXPECT_DOUBLE_EQ(value_of(v, "request_throughput"), 6 / 0.54) << "ends at 200, …, 700 ms";
    EXPECT_DOUBLE_EQ(value_of(v, "offered_rate"), 10) << "arrivals at 200, …, 700 ms";
    EXPECT_DOUBLE_EQ(value_of(v, "goodput_share"), 100);
    const TimeSpan seconds = counted_span(run, CountingWindow{{0.25, false}, {1, true}});
    EXPECT_EQ(seconds.from_ns, 250 * kMs);
    EXPECT_EQ(seconds.until_ns, 900 * kMs);
}

TEST(RunMetrics, OfAWindowInSecondsEndWithTheRun) {
    const RunRecord run = run_of({request(0, {100, 200}), request(500, {600, 1000})}, 1000);
    const TimeSpan longer = counted_span(run, CountingWindow{{0, true}, {60, false}});
    EXPECT_EQ(longer.until_ns, 1000 * kMs);
    EXPECT_DOUBLE_EQ(value_of(metrics_of(run, {}, longer), "output_throughput"), 4);
    const TimeSpan later = counted_span(run, CountingWindow{{30, false}, {1, true}});
    const auto v = metrics_of(run, {100, {}, {}}, later);
    for (const char* name : {"output_throughput", "request_throughput", "goodput_rate", "ttft_mean", "goodput_share"})
        EXPECT_TRUE(std::isnan(value_of(v, name))) << name << " of nothing";
    EXPECT_FALSE(load_of(run, later));
}

TEST(RunMetrics, CountTokensOfAllOutputsOfARequest) {
    RunRecord run = run_of({request(0, {100, 200})}, 1000);
    run.requests[0].others = {{1, 2, 3, 4}};
    EXPECT_DOUBLE_EQ(value_of(metrics_of(run, {}, counted_span(run, {})), "output_throughput"), 6);
}

TEST(RunMetrics, PerTokenAreOfTheFirstOutputOfARequest) {
    RunRecord run = run_of({request(0, {100, 200})}, 1000);
    run.requests[0].others = {{1, 2, 3, 4}};
    run.requests[0].finish_ns = 400 * kMs; // of the last output
    const auto v = metrics_of(run, {}, counted_span(run, {}));
    EXPECT_DOUBLE_EQ(value_of(v, "e2e_mean"), 400);
    EXPECT_DOUBLE_EQ(value_of(v, "tpot_mean"), 100);
    EXPECT_DOUBLE_EQ(value_of(v, "normalised_mean"), 100) << "200 ms of its two tokens";
}

TEST(RunMetrics, PrimaryOnesFollowFromTheObjective) {
    const auto names = [](const Slo& slo) {
        std::vector<std::string> out;
        for (const size_t m : default_primary(slo)) out.push_back(metric_infos()[m].name);
        return out;
    };
    using ::testing::ElementsAre;
    EXPECT_THAT(names({}),
                ElementsAre("output_throughput", "ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99", "e2e_p50"));
    EXPECT_EQ(names({100, {}, {}}).front(), "goodput_share");
}

TEST(Timing, IsTheSameForTheSameTimesWhateverWasSaid) {
    RunRecord a = run_of({request(0, {100, 200})}, 200), b = a;
    b.requests[0].output = {7, 8};
    EXPECT_EQ(timing_of(a), timing_of(b));
    b.requests[0].token_ns[1] += 1;
    EXPECT_NE(timing_of(a), timing_of(b));
    EXPECT_NE(timing_of(a), timing_of(run_of({}, 0)));
}

}  // namespace
}  // namespace patchbay::experiment::run_metrics_test
