#include "experiment/step_numbers.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "experiment/plugin_numbers.hpp"
#include "experiment/run_metrics.hpp"
#include "runner/graph_use.hpp"

namespace patchbay::experiment::step_numbers_test {
namespace {

using engine::StepReport;

StepReport step(uint64_t duration_us, uint32_t waiting = 0) {
    StepReport r;
    r.start_ns = 1000;
    r.end_ns = r.start_ns + duration_us * 1000;
    r.queues.waiting_requests = waiting;
    r.work.scheduled_seqs = 2;
    r.work.scheduled_tokens = 10;
    return r;
}

double of(const std::vector<NamedNumber>& numbers, const std::string& name) {
    const auto at = std::ranges::find(numbers, name, &NamedNumber::name);
    return at == numbers.end() ? kNoValue : at->value;
}

std::vector<NamedNumber> of(const std::vector<StepReport>& steps) {
    StepNumbers numbers;
    for (const StepReport& r : steps) numbers.add(r);
    return numbers.numbers();
}

TEST(StepNumbers, AreNoneWithoutSteps) { EXPECT_TRUE(of(std::vector<StepReport>{}).empty()); }

TEST(StepNumbers, OfTheQueueAreWeightedByTheTimeOfSteps) {
    StepReport first = step(9'800, 1), second = step(200, 51);
    first.queues.waiting_tokens = 10;
    second.queues.waiting_tokens = 510;
    second.queues.oldest_wait_ns = 7'000'000;
    const auto n = of({first, second});
    EXPECT_DOUBLE_EQ(of(n, "waiting_mean"), 2);
    EXPECT_DOUBLE_EQ(of(n, "waiting_p99"), 51) << "2 % of the time is more than 1 %";
    EXPECT_DOUBLE_EQ(of(n, "waiting_tokens_mean"), 20);
    EXPECT_DOUBLE_EQ(of(n, "waiting_tokens_p99"), 510);
    EXPECT_DOUBLE_EQ(of(n, "oldest_wait_mean"), 0.14);
    EXPECT_DOUBLE_EQ(of(n, "oldest_wait_p99"), 7);
    second.end_ns = second.start_ns + 90'000; // less than 1 % of it
    EXPECT_DOUBLE_EQ(of(of({first, second}), "waiting_p99"), 1);
}

TEST(StepNumbers, OfTheKvCache) {
    StepReport a = step(100), b = step(300);
    a.kv.total_pages = b.kv.total_pages = 10;
    a.kv.used_pages = 2;
    b.kv.used_pages = 6;
    a.kv.token_slots = 100;
    a.kv.empty_slots = 50;
    b.kv.token_slots = 200;
    b.kv.empty_slots = 20;
    b.preemption.preempted_tokens = 33;
    const auto n = of({a, b});
    EXPECT_DOUBLE_EQ(of(n, "kv_mean"), 50);
    EXPECT_DOUBLE_EQ(of(n, "kv_max"), 60);
    EXPECT_DOUBLE_EQ(of(n, "kv_fragmentation"), 100.0 * (50 * 1 + 20 * 3) / (100 * 1 + 200 * 3));
    EXPECT_DOUBLE_EQ(of(n, "recomputed_tokens"), 33);
}

TEST(StepNumbers, OfDraftsSayHowManyTokensASequenceGets) {
    StepReport r = step(100);
    r.drafts.drafted_tokens = 8;
    r.drafts.accepted_tokens = 6;
    StepNumbers numbers;
    numbers.got(1000);
    numbers.leave_out();
    numbers.got(4); // three drafts and the model's own
    numbers.got(2); // the second of three drafts ends the output
    numbers.got(0); // and one that was aborted
    numbers.add(r);
    numbers.got(1);
    numbers.got(1);
    numbers.add(step(100));
    const auto n = numbers.numbers();
    EXPECT_DOUBLE_EQ(of(n, "acceptance"), 75);
    EXPECT_DOUBLE_EQ(of(n, "tokens_per_step"), 2);
    EXPECT_TRUE(std::isnan(of(of({r}), "tokens_per_step")));
    EXPECT_TRUE(std::isnan(of(of({step(100)}), "acceptance")));
}

TEST(StepNumbers, OfBatchesLeaveOutStepsThatComputeNothing) {
    StepReport none = step(100);
    none.work.scheduled_seqs = none.work.scheduled_tokens = 0;
    const auto n = of({step(100), none});
    EXPECT_DOUBLE_EQ(of(n, "batch_sequences"), 2);
    EXPECT_DOUBLE_EQ(of(n, "batch_tokens"), 10);
}

TEST(StepNumbers, OfGraphsAreShares) {
    StepReport replayed = step(100), mixed = step(100), large = step(100);
    replayed.graph.replayed = true;
    replayed.graph.miss = "";
    replayed.graph.padded_tokens = 10;
    mixed.graph.miss = name_of(runner::GraphMiss::kMixedBatch);
    large.graph.miss = name_of(runner::GraphMiss::kTooLarge);
    const auto n = of({replayed, replayed, mixed, large});
    EXPECT_DOUBLE_EQ(of(n, "graph_replay_share"), 50);
    EXPECT_DOUBLE_EQ(of(n, "graph_miss_mixed_batch"), 25);
    EXPECT_DOUBLE_EQ(of(n, "graph_miss_too_large"), 25);
    EXPECT_DOUBLE_EQ(of(n, "graph_miss_not_captured"), 0);
    EXPECT_DOUBLE_EQ(of(n, "padding_share"), 100.0 * 20 / 60);
    EXPECT_TRUE(std::isnan(of(of({step(100)}), "graph_replay_share"))) << "the device has no graphs";
    StepReport disabled = step(100);
    disabled.graph.miss = name_of(runner::GraphMiss::kDisabled);
    EXPECT_TRUE(std::isnan(of(of({disabled}), "graph_replay_share")));
}

TEST(StepNumbers, OfCallsAreMeansOverSteps) {
    StepReport r = step(100);
    r.calls.plan_ns = 3000;
    r.calls.kv_choose_ns = 1000;
    r.calls.forward.attention_run = 8000;
    const auto n = of({r, step(100)});
    EXPECT_DOUBLE_EQ(of(n, "time_scheduler_plan"), 1.5);
    EXPECT_DOUBLE_EQ(of(n, "time_kv_policy_choose"), 0.5);
    EXPECT_DOUBLE_EQ(of(n, "time_attention_run"), 4);
    EXPECT_TRUE(std::isnan(of(n, "time_proposer_propose"))) << "which was not called";
}

TEST(StepNumbers, AreAllMetricsOfRuns) {
    StepReport r = step(100);
    r.graph.replayed = true;
    r.graph.miss = "";
    r.kv.total_pages = 1;
    r.kv.token_slots = r.drafts.drafted_tokens = 1;
    r.calls.plan_ns = r.calls.sample_ns = r.calls.propose_ns = r.calls.kv_update_ns = r.calls.kv_choose_ns = 1;
    r.calls.forward = {1, 1, 1, 1, 1, 1, 1, 1};
    StepNumbers numbers;
    numbers.got(1);
    numbers.add(r);
    const auto n = numbers.numbers();
    EXPECT_EQ(n.size(), step_metrics().size());
    std::set<std::string> names;
    for (const MetricInfo& info : metric_infos()) EXPECT_TRUE(names.insert(info.name).second) << info.name;
    for (const NamedNumber& number : n) EXPECT_TRUE(metric_named(number.name)) << number.name;
}

struct Sums final : host::MetricSink {
    double added = 0, set_to = 0;
    void add(const std::string&, const std::string&, const std::string&, double amount) override { added += amount; }
    void set(const std::string&, const std::string&, const std::string&, double value) override { set_to = value; }
};

TEST(PluginNumbers, CountWhatBelongsToTheStepsOfTheRunThatCount) {
    Sums sums;
    PluginNumbers plugins(&sums);
    plugins.add("scheduler", "sjf", "starved", 100); // of the warm-up
    plugins.set("scheduler", "sjf", "depth", 2);
    plugins.begin();
    plugins.add("scheduler", "sjf", "starved", 1);
    plugins.after_step(1000, true);
    plugins.set("scheduler", "fcfs", "depth", 5); // which took its place
    plugins.add("scheduler", "fcfs", "starved", 2);
    plugins.after_step(3000, true);
    plugins.add("scheduler", "fcfs", "starved", 50);
    plugins.set("scheduler", "fcfs", "depth", 1000);
    plugins.after_step(3000, false);
    plugins.add("sampler", "standard", "redrawn", -1); // counters do not fall
    const auto n = plugins.numbers();
    EXPECT_DOUBLE_EQ(of(n, "plugin.scheduler.starved_total"), 3);
    EXPECT_DOUBLE_EQ(of(n, "plugin.scheduler.depth"), (2.0 * 1 + 5.0 * 3) / 4);
    EXPECT_EQ(n.size(), 2u);
    EXPECT_DOUBLE_EQ(sums.added, 152) << "all is passed on";
    EXPECT_DOUBLE_EQ(sums.set_to, 1000);
}

TEST(PluginMetricNames, AreOfAKindAndANameOfItsPlugins) {
    EXPECT_TRUE(is_plugin_metric("plugin.scheduler.starved_total"));
    EXPECT_TRUE(is_plugin_metric("plugin.kv_policy.depth"));
    for (const char* name : {"ttft_p50", "plugin", "plugin.", "plugin.scheduler", "plugin.scheduler.", "plugin.chef.x",
                             "plugin.scheduler.UP", "plugin.scheduler.a.b"})
        EXPECT_FALSE(is_plugin_metric(name)) << name;
    EXPECT_EQ(plugin_metric("plugin.scheduler.starved_total").label, "scheduler starved");
    EXPECT_EQ(plugin_metric("plugin.scheduler.starved_total").unit, "per run");
}

}  // namespace
}  // namespace patchbay::experiment::step_numbers_test
