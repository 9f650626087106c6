// For which component calls, faults and swaps count; and which ranks are there.
#include "engine/metrics/slot_metrics.hpp"

#include <gmock/gmock.h>

#include "engine/metrics/rank_metrics.hpp"
#include "engine/step_report.hpp"
#include "host/swap_record.hpp"

namespace patchbay::engine {
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
    SlotMetrics part{all, {of("scheduler", "old"), of("sampler", "old")}};

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
}  // namespace patchbay::engine
