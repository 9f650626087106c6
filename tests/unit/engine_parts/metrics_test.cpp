// Each part of EngineMetrics alone.
#include <gmock/gmock.h>

#include "engine/facts.hpp"
#include "engine/metrics/draft_metrics.hpp"
#include "engine/metrics/grammar_metrics.hpp"
#include "engine/metrics/graph_metrics.hpp"
#include "engine/metrics/kv_metrics.hpp"
#include "engine/metrics/preemption_metrics.hpp"
#include "engine/metrics/queue_metrics.hpp"
#include "engine/metrics/request_metrics.hpp"
#include "engine/metrics/step_metrics.hpp"

namespace patchbay::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(KvMetrics, SayWhatIsFreeBeforeTheFirstStepAndNothingWithoutAnEngine) {
    metrics::Metrics all;
    {
        KvMetrics kv(all, {.num_blocks = 100, .watermark = 0.25});
        PreemptionMetrics preemption(all, {.swap_pages = 7});
        EXPECT_THAT(all.text(), HasSubstr("patchbay_kv_pages{state=\"free\"} 100\n"));
        EXPECT_THAT(all.text(), HasSubstr("patchbay_kv_swap_pages{state=\"free\"} 7\n"));
        EXPECT_THAT(all.text(), HasSubstr("patchbay_kv_watermark_ratio 0.25\n"));
    }
    EXPECT_THAT(all.text(), HasSubstr("patchbay_kv_pages{state=\"free\"} 0\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_kv_swap_pages{state=\"free\"} 0\n"));
}

TEST(KvMetrics, GiveSharesOfNothingAsNothing) {
    metrics::Metrics all;
    KvMetrics kv(all, {});
    kv.on_step({});
    EXPECT_THAT(all.text(), HasSubstr("patchbay_kv_utilisation_ratio 0\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_kv_fragmentation_ratio 0\n"));
    kv.on_step({.total_pages = 8, .used_pages = 2, .cached_pages = 1, .token_slots = 40, .empty_slots = 10});
    EXPECT_THAT(all.text(), HasSubstr("patchbay_kv_utilisation_ratio 0.25\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_kv_fragmentation_ratio 0.25\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_kv_pages{state=\"free\"} 5\n"));
}

TEST(PreemptionMetrics, TellThoseSwappedFromThoseRecomputed) {
    metrics::Metrics all;
    PreemptionMetrics preemption(all, {});
    PreemptionReport r{.preemptions = 3, .swapped_out = 1, .pages_to_host = 5, .swap_pages = 9, .used_swap_pages = 4};
    r.swap_fallbacks = {1, 0, 1};
    preemption.on_step(r);
    EXPECT_THAT(all.text(), HasSubstr("patchbay_preemptions_total{how=\"recompute\"} 2\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_preemptions_total{how=\"swap\"} 1\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_kv_swapped_pages_total{direction=\"out\"} 5\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_kv_swap_pages{state=\"free\"} 5\n"));
}

TEST(QueueMetrics, CountAdmissionsAndShowWhoIsThereNow) {
    metrics::Metrics all;
    QueueMetrics queues(all);
    const QueueReport busy{
        .running_requests = 4, .waiting_requests = 3, .waiting_tokens = 90, .oldest_wait_ns = 500'000'000};
    queues.on_step(busy, 2);
    queues.on_step({.running_requests = 1}, 2);
    EXPECT_THAT(all.text(), HasSubstr("patchbay_requests_admitted_total 4\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_requests_running 1\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_oldest_wait_seconds 0\n"));
}

TEST(GraphMetrics, CountByReasonAndSize) {
    metrics::Metrics all;
    GraphMetrics graphs(all, {.count = 3, .bytes = 4096, .capture_ns = 2'000'000'000});
    EXPECT_THAT(all.text(), HasSubstr("patchbay_graphs 3\n"));
    graphs.on_step({.replayed = true, .miss = "", .size = 8, .padded_tokens = 3, .captured = 3, .bytes = 4096}, 5);
    graphs.on_step({.miss = "size", .captured = 3, .bytes = 4096}, 300);
    const std::string text = all.text();
    EXPECT_THAT(text, HasSubstr("patchbay_graph_dispatches_total{mode=\"FULL\",reason=\"\",size=\"8\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_graph_dispatches_total{mode=\"NONE\",reason=\"size\",size=\"0\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_graph_tokens_total{kind=\"useful\"} 305\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_graph_tokens_total{kind=\"padded\"} 3\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_graph_capture_seconds_total 2\n"));
}

TEST(DraftMetrics, NameAModelsPassesOnlyWhereOneDrafts) {
    DraftReport r{.drafted_tokens = 3, .accepted_tokens = 1, .length = 4, .passes = 2, .pass_tokens = 9};
    r.drafted_at = {2, 1};
    r.accepted_at = {1};
    metrics::Metrics of_proposer, of_model;
    DraftMetrics(of_proposer, DraftsBy::kProposer).on_step(r);
    EXPECT_THAT(of_proposer.text(), HasSubstr("patchbay_spec_drafted_tokens_total{position=\"2\"} 1\n"));
    EXPECT_THAT(of_proposer.text(), HasSubstr("patchbay_spec_accepted_tokens_total{position=\"1\"} 1\n"));
    EXPECT_THAT(of_proposer.text(), HasSubstr("patchbay_spec_draft_length 0\n")) << "the engine has ended";
    EXPECT_THAT(of_proposer.text(), Not(HasSubstr("patchbay_draft_model_passes_total 2\n")));
    DraftMetrics(of_model, DraftsBy::kDraftModel).on_step(r);
    EXPECT_THAT(of_model.text(), HasSubstr("patchbay_draft_model_passes_total 2\n"));
    EXPECT_THAT(of_model.text(), HasSubstr("patchbay_draft_model_tokens_total 9\n"));
}

TEST(GrammarMetrics, AddUpTimesAndOutcomes) {
    metrics::Metrics all;
    GrammarMetrics grammars(all);
    for (int i = 0; i < 2; ++i)
        grammars.on_step({.masks = 3, .cut_drafts = 1, .mask_ns = 500'000'000, .compiled = 1, .refused = 2});
    EXPECT_THAT(all.text(), HasSubstr("patchbay_grammar_masks_total 6\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_grammar_mask_seconds_total 1\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_grammars_total{outcome=\"refused\"} 4\n"));
}

TEST(StepMetrics, ObserveOnlyStepsThatComputed) {
    metrics::Metrics all;
    StepMetrics steps(all);
    StepReport r;
    r.sync_reason = "";
    r.end_ns = 3'000'000'000;
    steps.on_step(r);
    r.work.scheduled_seqs = 1;
    r.work.scheduled_tokens = r.work.prefill_tokens = 5;
    steps.on_step(r);
    const std::string text = all.text();
    EXPECT_THAT(text, HasSubstr("patchbay_steps_total 2\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_step_seconds_count 1\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_step_seconds_sum 3\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_async_steps_total{depth=\"1\",reason=\"\"} 1\n"));
}

TEST(RequestMetrics, ForgetARequestWhoseOutputsHaveAllEnded) {
    metrics::Metrics all;
    RequestMetrics requests(all);
    requests.on_request(7, 1'000'000'000, 20, 2);
    RequestOutput out;
    out.id = 7;
    out.tokens = {1};
    out.finish = FinishReason::kLength;
    out.time_ns = 2'000'000'000;
    requests.on_output(out);
    out.index = 1;
    requests.on_output(out);
    requests.on_output(out); // of a request that is not known any more
    EXPECT_THAT(all.text(), HasSubstr("patchbay_generation_tokens_total 2\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_requests_finished_total{reason=\"length\"} 2\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_e2e_request_latency_seconds_sum 2\n"));
}

}  // namespace
}  // namespace patchbay::engine
