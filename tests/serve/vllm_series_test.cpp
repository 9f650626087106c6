// Each group of vLLM's series by itself, fed by hand.
#include "serve/vllm_series.hpp"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/facts.hpp"
#include "metrics/scrape.hpp"
#include "serve/engine_observers.hpp"
#include "serve/vllm_metrics.hpp"

namespace patchbay::serve::vllm::vllm_series_test {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

struct VllmSeriesTest : ::testing::Test {
    double value(const std::string& name, const metrics::Labels& labels = {}) const {
        const metrics::Scrape scrape(prometheus::TextSerializer().Serialize(registry.Collect()));
        EXPECT_TRUE(scrape.has("vllm:" + name)) << name;
        return scrape.sum("vllm:" + name, labels);
    }
    // Of a histogram.
    double sum(const std::string& name) const { return value(name + "_sum"); }
    double count(const std::string& name) const { return value(name + "_count"); }

    prometheus::Registry registry;
    const SeriesFactory factory{registry, "m"};
};

TEST_F(VllmSeriesTest, AllHaveTheLabelsOfTheModelAndTheEngine) {
    factory.gauge("vllm:g", "help").Set(1);
    factory.counter("vllm:c", "help", {{"position", "3"}}).Increment(2);
    factory.histogram("vllm:h", "help", std::vector<double>{1, 10}).Observe(3);
    const metrics::Labels both{{"model_name", "m"}, {"engine", "0"}};
    EXPECT_EQ(value("g", both), 1);
    EXPECT_EQ(value("c", {{"model_name", "m"}, {"engine", "0"}, {"position", "3"}}), 2);
    EXPECT_EQ(value("h_count", both), 1);
    EXPECT_EQ(value("h_bucket", {{"le", "1"}}), 0);
    EXPECT_EQ(value("h_bucket", {{"le", "10"}}), 1);
}

TEST(VllmMetricsTest, TheCacheConfigIsThatOfTheEngineThatServes) {
    metrics::Metrics all;
    engine::EngineFacts facts;
    EngineObservers observers({.version = "1", .vllm_metrics = true}, all, facts, "m");
    facts.kv.num_blocks = 7;
    observers.watch(facts, "m");
    const auto info = [&](const char* blocks) {
        return metrics::Scrape(all.text()).sum("vllm:cache_config_info", {{"num_gpu_blocks", blocks}});
    };
    EXPECT_EQ(info("0"), 0);
    EXPECT_EQ(info("7"), 1);
    observers.watch(facts, "m");
    EXPECT_EQ(info("7"), 1);
}

TEST_F(VllmSeriesTest, AStepSetsTheStateAndAddsToTheCounts) {
    StepSeries series(factory);
    engine::StepReport r;
    r.queues.running_requests = 3;
    r.queues.waiting_requests = 5;
    r.kv.total_pages = 8;
    r.kv.used_pages = 2;
    r.kv.prefix_query_tokens = 100;
    r.kv.prefix_hit_tokens = 60;
    r.preemption.preemptions = 1;
    r.work.scheduled_tokens = 40;
    series.on_step(r);
    r.queues.running_requests = 2;
    r.work.scheduled_tokens = 0; // no iteration of the model
    series.on_step(r);
    EXPECT_EQ(value("num_requests_running"), 2);
    EXPECT_EQ(value("num_requests_waiting"), 5);
    EXPECT_EQ(value("kv_cache_usage_perc"), 0.25);
    EXPECT_EQ(value("prefix_cache_queries_total"), 200);
    EXPECT_EQ(value("prefix_cache_hits_total"), 120);
    EXPECT_EQ(value("num_preemptions_total"), 2);
    EXPECT_EQ(sum("iteration_tokens_total"), 40);
    EXPECT_EQ(count("iteration_tokens_total"), 1);
    series.on_step({}); // without pages
    EXPECT_EQ(value("kv_cache_usage_perc"), 0);
}

TEST_F(VllmSeriesTest, DraftsAreCountedByPosition) {
    SpeculationSeries series(factory);
    engine::StepReport r;
    r.drafts.verified_sequences = 1; // by a tree: two drafts are first ones
    r.drafts.drafted_at = {2, 1};
    r.drafts.accepted_at = {2};
    r.drafts.drafted_tokens = 3;
    r.drafts.accepted_tokens = 2;
    series.on_step(r);
    EXPECT_EQ(value("spec_decode_num_drafts_total"), 1);
    EXPECT_EQ(value("spec_decode_num_draft_tokens_total"), 3);
    EXPECT_EQ(value("spec_decode_num_accepted_tokens_total"), 2);
    EXPECT_EQ(value("spec_decode_num_accepted_tokens_per_pos_total", {{"position", "0"}}), 2);
    EXPECT_EQ(value("spec_decode_num_accepted_tokens_per_pos_total", {{"position", "1"}}), 0);
}

TEST_F(VllmSeriesTest, TheTimeOfARequestIsSplitAtItsScheduleAndItsFirstToken) {
    LatencySeries series(factory);
    const Request request{.arrival_ns = 1 * kSecond};
    series.on_tokens(request, {}, 4 * kSecond);
    series.on_tokens(request, {4 * kSecond, 4 * kSecond, 1}, 6 * kSecond);
    engine::RequestOutput last{};
    last.first_scheduled_ns = 2 * kSecond;
    last.time_ns = 7 * kSecond;
    series.on_end(request, {4 * kSecond, 6 * kSecond, 3}, last);
    EXPECT_EQ(sum("time_to_first_token_seconds"), 3);
    EXPECT_EQ(sum("inter_token_latency_seconds"), 2);
    EXPECT_EQ(sum("request_time_per_output_token_seconds"), 1);
    EXPECT_EQ(sum("e2e_request_latency_seconds"), 6);
    EXPECT_EQ(sum("request_queue_time_seconds"), 1);
    EXPECT_EQ(sum("request_inference_time_seconds"), 5);
    EXPECT_EQ(sum("request_prefill_time_seconds"), 2);
    EXPECT_EQ(sum("request_decode_time_seconds"), 2);
}

TEST_F(VllmSeriesTest, ARequestThatNeverRanHasOnlyAWholeTime) {
    LatencySeries series(factory);
    engine::RequestOutput last{};
    last.time_ns = 3 * kSecond;
    series.on_end({.arrival_ns = 1 * kSecond}, {}, last);
    EXPECT_EQ(sum("e2e_request_latency_seconds"), 2);
    for (const char* name : {"request_queue_time_seconds", "request_inference_time_seconds",
                             "request_prefill_time_seconds", "request_decode_time_seconds",
                             "request_time_per_output_token_seconds"})
        EXPECT_EQ(count(name), 0) << name;
}

TEST_F(VllmSeriesTest, RequestsAreCountedByTheirSizeAndEnd) {
    RequestSeries series(factory, 64);
    const Request request{.prompt_tokens = 30, .max_tokens = 8, .outputs = std::vector<Output>(2)};
    series.on_prefill(request);
    series.on_tokens(3);
    series.on_tokens(2);
    series.on_output_end(request, {0, 0, 5}, engine::FinishReason::kLength);
    EXPECT_EQ(count("request_params_n"), 0); // of a whole request
    series.on_end(request);
    EXPECT_EQ(value("prompt_tokens_total"), 30);
    EXPECT_EQ(value("generation_tokens_total"), 5);
    EXPECT_EQ(value("request_success_total", {{"finished_reason", "length"}}), 1);
    EXPECT_EQ(value("request_success_total"), 1);
    EXPECT_EQ(sum("request_prompt_tokens"), 30);
    EXPECT_EQ(sum("request_generation_tokens"), 5);
    EXPECT_EQ(sum("request_params_n"), 2);
    EXPECT_EQ(sum("request_params_max_tokens"), 8);
    EXPECT_EQ(value("request_prompt_tokens_bucket", {{"le", "20"}}), 0);
    EXPECT_EQ(value("request_prompt_tokens_bucket", {{"le", "50"}}), 1); // the last below 64
}

TEST(VllmMetricsTest, CountsARequestOnceAndTheTimeOfThoseThatWereNotAborted) {
    metrics::Metrics all;
    engine::EngineFacts facts;
    facts.max_model_len = 64;
    VllmMetrics series(all, "m", facts);
    engine::Request request;
    request.prompt = {1, 2};
    request.sampling.n = 2;
    for (const auto& [id, second] : {std::pair{1, engine::FinishReason::kLength}, {3, engine::FinishReason::kAbort}}) {
        series.on_request(id, request);
        engine::RequestOutput out;
        out.id = id;
        out.tokens = {7};
        out.time_ns = kSecond;
        out.finish = engine::FinishReason::kLength;
        series.on_output(out);
        out.index = 1;
        out.finish = second;
        series.on_output(out);
    }
    const metrics::Scrape scrape(all.text());
    EXPECT_EQ(scrape.sum("vllm:request_params_n_count", {}), 2);
    EXPECT_EQ(scrape.sum("vllm:request_params_n_sum", {}), 4);
    EXPECT_EQ(scrape.sum("vllm:request_success_total", {}), 4);
    EXPECT_EQ(scrape.sum("vllm:e2e_request_latency_seconds_count", {}), 3);
}

TEST(VllmMetricsTest, OutputsThatArriveWholeAreNotSplitAtTheirFirstToken) {
    metrics::Metrics all;
    engine::EngineFacts facts;
    facts.max_model_len = 64;
    VllmMetrics series(all, "m", facts);
    const auto count = [&](const std::string& name) {
        return metrics::Scrape(all.text()).sum("vllm:request_" + name + "_seconds_count", {});
    };
    const auto run = [&](engine::RequestId id, const std::vector<std::vector<engine::TokenId>>& deltas) {
        series.on_request(id, {});
        for (const auto& tokens : deltas) {
            engine::RequestOutput out;
            out.id = id;
            out.tokens = tokens;
            out.time_ns = kSecond;
            if (&tokens == &deltas.back()) out.finish = engine::FinishReason::kLength;
            series.on_output(out);
        }
    };
    run(1, {{7, 8, 9}}); // as with best_of
    EXPECT_EQ(count("inference_time"), 1);
    EXPECT_EQ(count("prefill_time"), 0);
    EXPECT_EQ(count("decode_time"), 0);
    EXPECT_EQ(count("time_per_output_token"), 0);
    run(2, {{7}}); // its only token
    EXPECT_EQ(count("prefill_time"), 1);
    EXPECT_EQ(count("decode_time"), 1);
    run(3, {{7}, {8, 9}});
    EXPECT_EQ(count("decode_time"), 2);
    EXPECT_EQ(count("time_per_output_token"), 1);
}

}  // namespace
}  // namespace patchbay::serve::vllm::vllm_series_test
