#include "engine/metrics/engine_metrics.hpp"

#include <gmock/gmock.h>

#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::engine_metrics_test {
namespace {

using namespace testing;

EngineFacts facts() {
    EngineFacts f;
    f.plugins = {{"scheduler", "fcfs", "1.0.0", "aa", "", ""}, {"sampler", "standard", "1.0.0", "bb", "", ""},
                 {"model", "llama", "1.0.0", "cc", "", ""}, {"device", "cpu", "1.0.0", "ee", "", ""},
                 {"proposer", "ngram", "1.0.0", "dd", "", ""}};
    return f;
}

struct Scrape {
    metrics::Metrics all;
    EngineMetrics engine{all, facts(), "9.9"};

    void expect(const std::string& line) const {
        const std::string text = all.text();
        EXPECT_NE(text.find(line + "\n"), std::string::npos) << line << "\nis not in\n" << text;
    }
};

RequestOutput delta(RequestId id, uint64_t ms, size_t tokens, FinishReason finish = FinishReason::kNone) {
    RequestOutput out;
    out.id = id;
    out.tokens.assign(tokens, 7);
    out.finish = finish;
    out.time_ns = ms * 1'000'000;
    return out;
}

TEST(EngineMetricsTest, CountRequestsThatEndWithoutATokenAndTakeNoTimeOfThem) {
    Scrape s;
    for (RequestId id = 1; id <= 4; ++id) s.engine.on_request(id, 0, 20);
    s.engine.on_output(delta(1, 100, 1, FinishReason::kLength));
    s.engine.on_output(delta(2, 9000, 0, FinishReason::kAbort)); // it waited in the queue
    s.engine.on_output(delta(3, 200, 1));
    s.engine.on_output(delta(3, 9000, 0, FinishReason::kAbort));
    s.engine.on_output(delta(4, 300, 0, FinishReason::kError));
    s.expect("patchbay_time_to_first_token_seconds_count 2");
    s.expect("patchbay_requests_without_token_total{reason=\"abort\"} 1");
    s.expect("patchbay_requests_without_token_total{reason=\"error\"} 1");
    s.expect("patchbay_e2e_request_latency_seconds_count 1");
    s.expect("patchbay_requests_finished_total{reason=\"abort\"} 2");
}

TEST(EngineMetricsTest, SayThatTheTimeOfASimulationIsVirtual) {
    metrics::Metrics all;
    EngineMetrics computed(all, facts(), "9.9");
    EngineFacts of_simulation = facts();
    of_simulation.device_computes = false;
    EngineMetrics simulated(all, of_simulation, "9.9");
    StepReport step;
    step.end_ns = 2'000'000'000;
    step.work.scheduled_tokens = 1;
    simulated.on_end(step);
    const std::string text = all.text();
    EXPECT_THAT(text, ::testing::HasSubstr("patchbay_steps_total{time=\"virtual\"} 1\n"));
    EXPECT_THAT(text, ::testing::HasSubstr("patchbay_steps_total 0\n")) << "of the engine that computes";
    EXPECT_THAT(text, ::testing::HasSubstr("phase=\"run\",time=\"virtual\"}"));
    EXPECT_THAT(text, ::testing::HasSubstr("patchbay_build_info{version=\"9.9\"} 1\n")) << "which no time is about";
}

TEST(EngineMetricsTest, ARequestsLatenciesRunFromItsArrival) {
    Scrape s;
    s.engine.on_request(1, 1'000'000'000, 20);
    s.engine.on_output(delta(1, 1100, 1));
    s.engine.on_output(delta(1, 1150, 2)); // a draft was accepted: two tokens at once
    RequestOutput last = delta(1, 1300, 1, FinishReason::kLength);
    last.first_scheduled_ns = 1'040'000'000;
    s.engine.on_output(last);
    s.expect("patchbay_time_to_first_token_seconds_sum 0.1");
    s.expect("patchbay_inter_token_latency_seconds_count 3");
    s.expect("patchbay_inter_token_latency_seconds_sum 0.2");
    s.expect("patchbay_e2e_request_latency_seconds_sum 0.3");
    s.expect("patchbay_request_queue_seconds_sum 0.04");
    s.expect("patchbay_time_per_output_token_seconds_count 1");
    s.expect("patchbay_request_prompt_tokens_sum 20");
    s.expect("patchbay_request_generation_tokens_sum 4");
    s.expect("patchbay_generation_tokens_total 4");
    s.expect("patchbay_requests_finished_total{reason=\"length\"} 1");
    s.expect("patchbay_requests_finished_total{reason=\"abort\"} 0");
    s.engine.on_output(delta(1, 2000, 5)); // ended, or never announced: not counted
    s.expect("patchbay_generation_tokens_total 4");
}

TEST(EngineMetricsTest, OneThatWasScheduledWhenAVirtualClockBeganHasWaited) {
    Scrape s;
    s.engine.on_request(1, 0, 20);
    s.engine.on_output(delta(1, 1300, 1, FinishReason::kLength)); // scheduled at 0
    s.engine.on_request(2, 0, 20);
    s.engine.on_output(delta(2, 1300, 0, FinishReason::kAbort)); // never scheduled
    s.expect("patchbay_request_queue_seconds_count 1");
}

TEST(EngineMetricsTest, AReplayIsCountedByItsSizeAndAMissByItsReason) {
    Scrape s;
    StepReport r;
    r.work.scheduled_seqs = r.work.scheduled_tokens = 5;
    r.graph.miss = "not_captured";
    r.graph.padded_tokens = 3;
    r.graph.capture_ns = 250'000'000;
    s.engine.on_end(r);
    r.graph.replayed = true;
    r.graph.miss = "";
    r.graph.size = 8;
    r.graph.capture_ns = 0;
    r.sync_reason = "";
    r.graph.captured = 1;
    r.graph.bytes = 4096;
    s.engine.on_end(r);
    s.expect("patchbay_graph_dispatches_total{mode=\"NONE\",reason=\"not_captured\",size=\"0\"} 1");
    s.expect("patchbay_graph_dispatches_total{mode=\"FULL\",reason=\"\",size=\"8\"} 1");
    s.expect("patchbay_graph_tokens_total{kind=\"useful\"} 10");
    s.expect("patchbay_graph_tokens_total{kind=\"padded\"} 6");
    s.expect("patchbay_graph_capture_seconds_total 0.25");
    s.expect("patchbay_async_steps_total{depth=\"0\",reason=\"off\"} 1");
    s.expect("patchbay_async_steps_total{depth=\"1\",reason=\"\"} 1");
    s.expect("patchbay_graphs 1");
    s.expect("patchbay_graph_bytes 4096");
}

TEST(EngineMetricsTest, AStepWithoutWorkIsNoForwardPass) {
    Scrape s;
    s.engine.on_end(StepReport{});
    s.expect("patchbay_steps_total 1");
    s.expect("patchbay_step_seconds_count 0");
    EXPECT_EQ(s.all.text().find("patchbay_graph_dispatches_total{"), std::string::npos);
}

TEST(EngineMetricsTest, PluginsAreNamedWithVersionAndHash) {
    Scrape s;
    s.expect("patchbay_build_info{version=\"9.9\"} 1");
    EXPECT_NE(s.all.text().find("kind=\"proposer\",plugin=\"ngram\",sha256=\"dd\",version=\"1.0.0\"} 1"),
              std::string::npos);
}

host::SwapRecord swap_to_sjf(host::SwapState state, const char* phase = "") {
    host::SwapRecord r;
    r.kind = "scheduler";
    r.from = {"scheduler", "fcfs", "1.0.0", "aa", "", ""};
    r.to = {"scheduler", "sjf", "1.0.0", "ff", "", ""};
    r.state = state;
    r.phase = phase;
    r.pause_ns = 3'000;
    return r;
}

TEST(EngineMetricsTest, ACallThatTookTooLongCountsForWhoMadeIt) {
    Scrape s;
    StepReport report;
    report.calls.plan_ns = 1'000'000;
    report.swaps = {swap_to_sjf(host::SwapState::kOnProbation)};
    s.engine.on_end(report);
    report.calls.plan_ns = 2'000'000'000;
    report.swaps = {swap_to_sjf(host::SwapState::kRolledBack, "time")};
    report.swaps[0].after_calls = true;
    s.engine.on_end(report);
    report.calls.plan_ns = 1'000'000;
    report.swaps.clear();
    s.engine.on_end(report);
    s.expect("patchbay_plugin_call_seconds_sum{call=\"plan\",kind=\"scheduler\",plugin=\"sjf\"} 2.001");
    s.expect("patchbay_plugin_call_seconds_sum{call=\"plan\",kind=\"scheduler\",plugin=\"fcfs\"} 0.001");
}

TEST(EngineMetricsTest, ASwapMovesWhatIsInTheSlotAndWhatCallsAreCountedFor) {
    using host::SwapState;
    Scrape s;
    StepReport report;
    report.calls.plan_ns = 2'000'000'000;
    report.swaps = {swap_to_sjf(SwapState::kOnProbation)};
    s.engine.on_end(report);
    const auto info = [](const char* name, const char* sha256, const char* value) {
        return std::string("patchbay_plugin_info{abi=\"1.0\",kind=\"scheduler\",plugin=\"") + name + "\",sha256=\"" +
               sha256 + "\",version=\"1.0.0\"} " + value;
    };
    s.expect(info("fcfs", "aa", "0"));
    s.expect(info("sjf", "ff", "1"));
    s.expect("patchbay_plugin_call_seconds_sum{call=\"plan\",kind=\"scheduler\",plugin=\"fcfs\"} 0");
    s.expect("patchbay_plugin_call_seconds_sum{call=\"plan\",kind=\"scheduler\",plugin=\"sjf\"} 2");
    s.expect("patchbay_plugin_swap_pause_seconds_count{kind=\"scheduler\"} 1");
    s.expect("patchbay_plugin_swap_pause_seconds_bucket{kind=\"scheduler\",le=\"5e-06\"} 1");
    s.expect("patchbay_plugin_swap_pause_seconds_bucket{kind=\"scheduler\",le=\"2e-06\"} 0");
    report.swaps = {swap_to_sjf(SwapState::kRolledBack, "plan")}; // its predecessor planned in its place
    s.engine.on_end(report);
    s.expect(info("fcfs", "aa", "1"));
    s.expect(info("sjf", "ff", "0"));
    s.expect("patchbay_plugin_faults_total{kind=\"scheduler\",plugin=\"sjf\",reason=\"probation\"} 1");
    s.expect("patchbay_plugin_call_seconds_sum{call=\"plan\",kind=\"scheduler\",plugin=\"fcfs\"} 2");
    report.swaps = {swap_to_sjf(SwapState::kOnProbation), swap_to_sjf(SwapState::kCommitted),
                    swap_to_sjf(SwapState::kRefused, "probe"), swap_to_sjf(SwapState::kRefused, "probe")};
    s.engine.on_end(report);
    s.expect(info("sjf", "ff", "1"));
    s.expect("patchbay_plugin_swaps_total{kind=\"scheduler\",outcome=\"rolled_back\"} 1");
    s.expect("patchbay_plugin_swap_failures_total{kind=\"scheduler\",phase=\"plan\"} 1");
    s.expect("patchbay_plugin_swap_failures_total{kind=\"scheduler\",phase=\"probe\"} 2");
    s.expect("patchbay_plugin_swaps_total{kind=\"scheduler\",outcome=\"committed\"} 1");
    s.expect("patchbay_plugin_swaps_total{kind=\"scheduler\",outcome=\"refused\"} 2");
    host::SwapRecord one = swap_to_sjf(SwapState::kOnProbation), other = one;
    one.transaction = other.transaction = 7;
    other.kind = other.from.kind = other.to.kind = "sampler";
    report.swaps = {one, other};
    s.engine.on_end(report);
    one.state = other.state = SwapState::kCommitted;
    report.swaps = {one, other};
    s.engine.on_end(report);
    s.expect("patchbay_plugin_swap_pause_seconds_count{kind=\"several\"} 1");
    s.expect("patchbay_plugin_swap_pause_seconds_count{kind=\"scheduler\"} 2");
    s.expect("patchbay_plugin_swap_transactions_total{outcome=\"committed\"} 1");
    s.expect("patchbay_plugin_swaps_total{kind=\"sampler\",outcome=\"committed\"} 1");
}

TEST(EngineMetricsTest, ASwapOfTheModelLeavesItsPluginInTheSlot) {
    Scrape s;
    host::SwapRecord swap = swap_to_sjf(host::SwapState::kOnProbation);
    swap.kind = "model";
    swap.from = {"model", "checkpoints/step-1000", "1.0.0", "cc", "", "", "llama"};
    swap.to = {"model", "checkpoints/step-2000", "1.0.0", "cc", "", "", "llama"};
    StepReport report;
    report.swaps = {swap};
    s.engine.on_end(report);
    report.swaps[0].state = host::SwapState::kRolledBack;
    s.engine.on_end(report);
    s.expect("patchbay_plugin_info{abi=\"1.0\",kind=\"model\",plugin=\"llama\",sha256=\"cc\",version=\"1.0.0\"} 1");
    s.expect("patchbay_plugin_faults_total{kind=\"model\",plugin=\"llama\",reason=\"probation\"} 1");
    EXPECT_EQ(s.all.text().find("checkpoints"), std::string::npos);
}

TEST(EngineMetricsTest, CallsAndFaultsOfASwappedProposerCountForItsSuccessor) {
    Scrape s;
    StepReport report;
    report.calls.propose_ns = 1'000'000'000;
    s.engine.on_end(report);
    host::SwapRecord r = swap_to_sjf(host::SwapState::kOnProbation);
    r.kind = r.from.kind = r.to.kind = "proposer";
    r.from.name = "ngram", r.to.name = "suffix";
    report.swaps = {r};
    report.calls.propose_ns = 3'000'000'000;
    report.calls.proposer_faults = 3;
    report.calls.proposer_breaches = 1;
    s.engine.on_end(report);
    s.expect("patchbay_plugin_call_seconds_sum{call=\"propose\",kind=\"proposer\",plugin=\"ngram\"} 1");
    s.expect("patchbay_plugin_call_seconds_sum{call=\"propose\",kind=\"proposer\",plugin=\"suffix\"} 3");
    s.expect("patchbay_plugin_faults_total{kind=\"proposer\",plugin=\"ngram\",reason=\"error\"} 0");
    s.expect("patchbay_plugin_faults_total{kind=\"proposer\",plugin=\"suffix\",reason=\"error\"} 2");
    s.expect("patchbay_plugin_faults_total{kind=\"proposer\",plugin=\"suffix\",reason=\"contract\"} 1");
}

TEST(EngineMetricsTest, SwapsAndFaultsBeginAtZeroSoThatARateSeesTheFirst) {
    Scrape s;
    for (const char* outcome : {"committed", "refused", "rolled_back"})
        s.expect(std::string("patchbay_plugin_swaps_total{kind=\"sampler\",outcome=\"") + outcome + "\"} 0");
    s.expect("patchbay_plugin_faults_total{kind=\"scheduler\",plugin=\"fcfs\",reason=\"contract\"} 0");
    s.expect("patchbay_plugin_faults_total{kind=\"model\",plugin=\"llama\",reason=\"probation\"} 0");
}

TEST(EngineMetricsTest, AStepWithoutACallIsNoObservationOfIt) {
    Scrape s;
    StepReport report;
    report.calls.plan_ns = 1'000;
    s.engine.on_end(report);
    s.engine.on_end(report);
    s.expect("patchbay_plugin_call_seconds_count{call=\"plan\",kind=\"scheduler\",plugin=\"fcfs\"} 2");
    s.expect("patchbay_plugin_call_seconds_count{call=\"propose\",kind=\"proposer\",plugin=\"ngram\"} 0");
}

TEST(EngineMetricsTest, WhatIsAboutThePresentEndsWithTheEngineAndCountersGoOn) {
    metrics::Metrics all;
    StepReport step;
    step.queues.waiting_requests = 5;
    { EngineMetrics(all, facts(), "9.9").on_end(step); }
    EngineFacts next;
    next.plugins = {{"scheduler", "sjf", "1.0.0", "ee", "", ""}};
    EngineMetrics second(all, next, "9.9");
    const std::string text = all.text();
    EXPECT_NE(text.find("plugin=\"fcfs\",sha256=\"aa\",version=\"1.0.0\"} 0"), std::string::npos) << text;
    EXPECT_NE(text.find("plugin=\"sjf\",sha256=\"ee\",version=\"1.0.0\"} 1"), std::string::npos) << text;
    EXPECT_NE(text.find("patchbay_requests_waiting 0"), std::string::npos) << text;
    EXPECT_NE(text.find("patchbay_steps_total 1"), std::string::npos) << text;
}

// The value of a series in a scrape, by its name with labels.
double value_of(const std::string& text, const std::string& series) {
    const size_t at = text.find("\n" + series + " ");
    if (at == std::string::npos) throw std::runtime_error(series + " is not in\n" + text);
    return std::stod(text.substr(at + series.size() + 2));
}

// What requests got is known without the metrics: the scrape has to add up to it.
TEST(EngineMetricsTest, AScrapeAddsUpToWhatTheRequestsGot) {
    config::EngineConfig c = tiny_model();
    c.engine.num_blocks = 24; // too few for all at once: some are preempted
    c.engine.watermark = 0;
    Harness h(c);
    metrics::Metrics all;
    EngineMetrics metrics(all, h.engine->facts(), "9.9");
    const std::vector<TokenId> shared = random_prompt(1, 40);
    size_t prompt_tokens = 0, tokens = 0, cached = 0, preempted = 0, aborted = 0;
    std::map<RequestId, size_t> ended;
    for (uint64_t i = 0; i < 8; ++i) {
        Request r;
        r.prompt = i % 2 ? shared : random_prompt(i, 30);
        r.sampling = greedy(20);
        r.on_output = [&](const RequestOutput& out) {
            metrics.on_output(out);
            tokens += out.tokens.size();
            if (out.finish == FinishReason::kNone) return;
            ended[out.id] += 1;
            cached += out.cached_tokens;
            preempted += out.preemptions;
            aborted += out.finish == FinishReason::kAbort;
        };
        prompt_tokens += r.prompt.size();
        const auto count = static_cast<uint32_t>(r.prompt.size());
        const auto id = h.engine->add_request(std::move(r));
        ASSERT_TRUE(id) << id.error();
        metrics.on_request(*id, h.clock.now_ns(), count);
    }
    while (h.engine->has_unfinished()) {
        if (h.steps.size() == 5) h.engine->abort(1);
        metrics.on_end(h.step());
        const std::string text = all.text();
        EXPECT_EQ(value_of(text, "patchbay_kv_pages{state=\"free\"}") +
                      value_of(text, "patchbay_kv_pages{state=\"used\"}") +
                      value_of(text, "patchbay_kv_pages{state=\"cached\"}"),
                  24);
    }
    ASSERT_EQ(ended.size(), 8u);
    ASSERT_GT(preempted, 0u);
    ASSERT_GT(cached, 0u);
    ASSERT_EQ(aborted, 1u);
    const std::string text = all.text();
    EXPECT_EQ(value_of(text, "patchbay_steps_total"), static_cast<double>(h.steps.size()));
    EXPECT_EQ(value_of(text, "patchbay_generation_tokens_total"), static_cast<double>(tokens));
    EXPECT_EQ(value_of(text, "patchbay_request_prompt_tokens_sum"), static_cast<double>(prompt_tokens));
    EXPECT_EQ(value_of(text, "patchbay_preemptions_total{how=\"recompute\"}"), static_cast<double>(preempted));
    EXPECT_EQ(value_of(text, "patchbay_requests_finished_total{reason=\"length\"}"), 7);
    EXPECT_EQ(value_of(text, "patchbay_requests_finished_total{reason=\"abort\"}"), 1);
    EXPECT_EQ(value_of(text, "patchbay_requests_running"), 0);
    EXPECT_EQ(value_of(text, "patchbay_kv_pages{state=\"used\"}"), 0);
}

// Where nothing is preempted, each token of a prompt that was not cached is computed once, and each token of an output
// but its last one.
TEST(EngineMetricsTest, TheTokensOfStepsAddUpToThoseOfPromptsAndOutputs) {
    Harness h(tiny_model());
    metrics::Metrics all;
    EngineMetrics metrics(all, h.engine->facts(), "9.9");
    const std::vector<TokenId> shared = random_prompt(1, 40);
    size_t prompt_tokens = 0, tokens = 0, cached = 0, requests = 0;
    for (uint64_t round = 0; round < 2; ++round) { // the second finds what the first has computed
        for (uint64_t i = 0; i < 3; ++i) {
            Request r;
            r.prompt = i == 0 ? shared : random_prompt(10 * round + i, 30);
            r.sampling = greedy(6);
            r.on_output = [&](const RequestOutput& out) {
                tokens += out.tokens.size();
                if (out.finish != FinishReason::kNone) cached += out.cached_tokens;
            };
            prompt_tokens += r.prompt.size();
            requests += 1;
            ASSERT_TRUE(h.engine->add_request(std::move(r)));
        }
        while (h.engine->has_unfinished()) metrics.on_end(h.step());
    }
    ASSERT_GT(cached, 0u);
    const std::string text = all.text();
    EXPECT_EQ(value_of(text, "patchbay_preemptions_total{how=\"recompute\"}"), 0);
    EXPECT_EQ(value_of(text, "patchbay_prefix_hit_tokens_total"), static_cast<double>(cached));
    EXPECT_EQ(value_of(text, "patchbay_scheduled_tokens_total{kind=\"prefill\"}"),
              static_cast<double>(prompt_tokens - cached));
    EXPECT_EQ(value_of(text, "patchbay_scheduled_tokens_total{kind=\"decode\"}"),
              static_cast<double>(tokens - requests));
    EXPECT_EQ(value_of(text, "patchbay_step_seconds_count"), static_cast<double>(h.steps.size()));
}

TEST(EngineMetricsTest, APluginsOwnMetricsReachTheScrape) {
    metrics::Metrics all;
    PluginMetrics sink(all);
    VirtualClock clock;
    config::EngineConfig c = tiny_model();
    c.proposer = config::PluginChoice{"ngram", {}};
    c.engine.num_speculative_tokens = 2;
    auto made = Engine::create(c, registry(), clock, &sink);
    ASSERT_TRUE(made) << made.error();
    Request request;
    request.prompt = {5, 6, 7, 5, 6, 7, 5, 6};
    request.sampling = greedy(4);
    ASSERT_TRUE((*made)->add_request(std::move(request)));
    while ((*made)->has_unfinished()) ASSERT_TRUE((*made)->step());
    EXPECT_NE(all.text().find("patchbay_plugin_ngram_lookups_total{kind=\"proposer\",plugin=\"ngram\"} "),
              std::string::npos)
        << all.text();
}

}  // namespace
}  // namespace patchbay::engine::engine_metrics_test
