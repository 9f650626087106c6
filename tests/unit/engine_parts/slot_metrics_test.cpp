// For which component calls, faults and swaps count; and which ranks are there.
#include "engine/metrics/slot_metrics.hpp"

#include <gmock/gmock.h>

#include "engine/metrics/rank_metrics.hpp"
#include "engine/step_report.hpp"
#include "host/swap_record.hpp"

namespace patchbay::engine::slot_metrics_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

host::Identity of(const char* kind, const char* name) {
    return {.kind = kind, .name = name, .version = "1.0.0", .sha256 = "00", .build = {}, .path = {}};
}

host::SwapRecord swap(const char* kind, host::SwapState state, uint64_t transaction = 0) {
    host::SwapRecord r;
    r.kind = kind;
    r.transaction = transaction;
    r.from = of(kind, "old");
    r.to = of(kind, "new");
    r.state = state;
    r.phase = "time";
    return r;
}

struct Bench {
    metrics::Metrics all;
    SlotMetrics part{all, all, {of("scheduler", "old"), of("sampler", "old"), of("model", "llama")}};

    void step(std::vector<host::SwapRecord> swaps, uint64_t plan_ns = 0) {
        StepReport r;
        r.swaps = std::move(swaps);
        r.calls.plan_ns = plan_ns;
        part.on_step(r);
    }
    void expect(const std::string& line) { EXPECT_THAT(all.text(), HasSubstr(line + "\n")); }
    static std::string plan_time(const char* plugin) {
        return std::string("patchbay_plugin_call_seconds_sum{call=\"plan\",kind=\"scheduler\",plugin=\"") + plugin +
               "\"} ";
    }
};

TEST(SlotMetrics, CallsCountForTheOneThatWasCalled) {
    Bench b;
    b.step({}, 250'000'000);
    b.step({swap("scheduler", host::SwapState::kOnProbation)}, 500'000'000); // it plans in that step
    host::SwapRecord late = swap("scheduler", host::SwapState::kRolledBack);
    late.after_calls = true; // it has planned in that step
    b.step({late}, 1'000'000'000);
    b.step({}, 4'000'000'000);
    b.expect(Bench::plan_time("old") + "4.25");
    b.expect(Bench::plan_time("new") + "1.5");
    b.expect("patchbay_plugin_faults_total{kind=\"scheduler\",plugin=\"new\",reason=\"probation\"} 1");
    b.expect("patchbay_plugin_swaps_total{kind=\"scheduler\",outcome=\"rolled_back\"} 1");
    b.expect("patchbay_plugin_swap_failures_total{kind=\"scheduler\",phase=\"time\"} 1");
}

TEST(SlotMetrics, BeginAtNoughtSoThatARateSeesTheFirstSwap) {
    Bench b;
    b.expect("patchbay_plugin_swap_pause_seconds_count{kind=\"sampler\"} 0");
    b.expect("patchbay_plugin_swap_pause_seconds_count{kind=\"several\"} 0");
    b.expect("patchbay_plugin_swaps_total{kind=\"sampler\",outcome=\"committed\"} 0");
    b.expect("patchbay_plugin_swap_transactions_total{outcome=\"rolled_back\"} 0");
}

TEST(SlotMetrics, ATransactionCountsOnceAndPausesTheEngineOnce) {
    Bench b;
    b.step({swap("scheduler", host::SwapState::kOnProbation, 7), swap("sampler", host::SwapState::kOnProbation, 7)});
    b.step({swap("scheduler", host::SwapState::kCommitted, 7), swap("sampler", host::SwapState::kCommitted, 7)});
    b.expect("patchbay_plugin_swap_transactions_total{outcome=\"committed\"} 1");
    b.expect("patchbay_plugin_swap_pause_seconds_count{kind=\"several\"} 1");
    b.expect("patchbay_plugin_swaps_total{kind=\"scheduler\",outcome=\"committed\"} 1");
    b.expect("patchbay_plugin_swaps_total{kind=\"sampler\",outcome=\"committed\"} 1");
}

TEST(SlotMetrics, ARefusalLeavesTheSlotAsItIs) {
    Bench b;
    b.step({swap("scheduler", host::SwapState::kRefused)});
    b.step({}, 1'000'000'000);
    b.expect(Bench::plan_time("old") + "1");
    b.expect("patchbay_plugin_swaps_total{kind=\"scheduler\",outcome=\"refused\"} 1");
    EXPECT_THAT(b.all.text(), Not(HasSubstr("plugin=\"new\"")));
}

host::SwapRecord model_swap(host::SwapState state) {
    host::SwapRecord r = swap("model", state);
    r.from.name = "models/a"; // of weights, as the record has it
    r.from.component = "llama";
    r.to.name = "models/b";
    r.to.component = "qwen";
    return r;
}

TEST(SlotMetrics, AModelsSwapMayBringAnotherPlugin) {
    Bench b;
    const auto forward = [&](uint64_t ns, std::vector<host::SwapRecord> swaps) {
        StepReport r;
        r.swaps = std::move(swaps);
        r.calls.forward.model_forward = ns;
        b.part.on_step(r);
    };
    const auto time_of = [](const std::string& plugin) {
        return "patchbay_plugin_call_seconds_sum{call=\"forward\",kind=\"model\",plugin=\"" + plugin + "\"} ";
    };
    const auto info_of = [](const std::string& plugin) {
        return "patchbay_plugin_info{abi=\"1.0\",kind=\"model\",plugin=\"" + plugin +
               "\",sha256=\"00\",version=\"1.0.0\"} ";
    };
    forward(250'000'000, {});
    forward(500'000'000, {model_swap(host::SwapState::kOnProbation)});
    b.expect(time_of("llama") + "0.25");
    b.expect(time_of("qwen") + "0.5");
    b.expect(info_of("llama") + "0");
    b.expect(info_of("qwen") + "1");
    forward(4'000'000'000, {model_swap(host::SwapState::kRolledBack)});
    b.expect(time_of("llama") + "4.25");
    b.expect(info_of("llama") + "1");
    b.expect(info_of("qwen") + "0");
    EXPECT_THAT(b.all.text(), Not(HasSubstr("models/")));
}

TEST(SlotMetrics, GaugesOfAPluginEndWithItsTimeInTheSlot) {
    Bench b;
    b.all.plugin_set("scheduler", "old", "queue", 5);
    b.all.plugin_set("sampler", "old", "cached", 6);
    b.all.plugin_add("scheduler", "old", "sorted", 7);
    b.step({swap("scheduler", host::SwapState::kOnProbation)});
    b.expect("patchbay_plugin_queue{kind=\"scheduler\",plugin=\"old\"} 0");
    b.expect("patchbay_plugin_cached{kind=\"sampler\",plugin=\"old\"} 6");
    b.expect("patchbay_plugin_sorted_total{kind=\"scheduler\",plugin=\"old\"} 7");
    b.all.plugin_set("scheduler", "new", "queue", 8);
    host::SwapRecord update = swap("scheduler", host::SwapState::kOnProbation); // of the same name
    update.from = update.to;
    b.step({update});
    b.expect("patchbay_plugin_queue{kind=\"scheduler\",plugin=\"new\"} 8");
    b.all.plugin_set("scheduler", "old", "queue", 9); // its predecessor's again
    b.step({swap("scheduler", host::SwapState::kRolledBack)});
    b.expect("patchbay_plugin_queue{kind=\"scheduler\",plugin=\"new\"} 0");
    b.expect("patchbay_plugin_queue{kind=\"scheduler\",plugin=\"old\"} 9");
}

TEST(SlotMetrics, GaugesOfAPluginEndWithTheEngineUnlessTheNextOneHasItToo) {
    metrics::Metrics all, in_virtual_time;
    all.plugin_set("scheduler", "a", "queue", 5);
    all.plugin_set("sampler", "b", "cached", 6);
    {
        SlotMetrics part(in_virtual_time, all, {of("scheduler", "a"), of("sampler", "b")});
        part.replaced_by({of("scheduler", "a"), of("sampler", "c")});
    }
    EXPECT_THAT(all.text(), HasSubstr("patchbay_plugin_queue{kind=\"scheduler\",plugin=\"a\"} 5\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_plugin_cached{kind=\"sampler\",plugin=\"b\"} 0\n"));
}

TEST(RankMetrics, AreThereAsLongAsTheEngineIs) {
    metrics::Metrics all;
    {
        const RankMetrics part(all, {"a", "b"});
        EXPECT_THAT(all.text(), HasSubstr("patchbay_rank_up{rank=\"0\"} 1\n"));
        EXPECT_THAT(all.text(), HasSubstr("patchbay_rank_up{rank=\"1\"} 1\n"));
    }
    EXPECT_THAT(all.text(), HasSubstr("patchbay_rank_up{rank=\"1\"} 0\n"));
}

TEST(RankMetrics, AnEngineThatIsAloneHasNone) {
    metrics::Metrics all;
    const RankMetrics part(all, {"a"});
    EXPECT_THAT(all.text(), Not(HasSubstr("patchbay_rank_up{")));
}

}  // namespace
}  // namespace patchbay::engine::slot_metrics_test
