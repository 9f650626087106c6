// Each part of EngineMetrics alone.
#include <gmock/gmock.h>

#include <sstream>

#include "engine/facts.hpp"
#include "engine/metrics/report_metrics.hpp"
#include "engine/metrics/request_metrics.hpp"
#include "engine/metrics/step_metrics.hpp"
#include "engine/step_report.hpp"
#include "execution/sync_reasons.hpp"

namespace patchbay::engine::metrics_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

EngineFacts facts_of(KvFacts kv, GraphFacts graphs = {}) {
    EngineFacts out;
    out.kv = std::move(kv);
    out.graphs = graphs;
    return out;
}

TEST(ReportMetrics, SayWhatIsFreeBeforeTheFirstStepAndNothingWithoutAnEngine) {
    metrics::Metrics all;
    {
        const ReportMetrics part(
            all, rows_of_steps(), report_at_load(facts_of({.num_blocks = 100, .swap_pages = 7, .watermark = 0.25})));
        EXPECT_THAT(all.text(), HasSubstr("patchbay_kv_pages{state=\"free\"} 100\n"));
        EXPECT_THAT(all.text(), HasSubstr("patchbay_kv_swap_pages{state=\"free\"} 7\n"));
        EXPECT_THAT(all.text(), HasSubstr("patchbay_kv_watermark_ratio 0.25\n"));
    }
    EXPECT_THAT(all.text(), HasSubstr("patchbay_kv_pages{state=\"free\"} 0\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_kv_swap_pages{state=\"free\"} 0\n"));
}

// Of steps with these reports, all rows.
std::string text_after(const std::vector<StepReport>& steps, const ReportRows& rows = rows_of_steps()) {
    metrics::Metrics all;
    ReportMetrics part(all, rows, {});
    for (const StepReport& r : steps) part.on_step(r);
    return all.text();
}

TEST(ReportMetrics, GiveSharesOfNothingAsNothing) {
    EXPECT_THAT(text_after({}), HasSubstr("patchbay_kv_utilisation_ratio 0\n"));
    EXPECT_THAT(text_after({}), HasSubstr("patchbay_kv_fragmentation_ratio 0\n"));
    StepReport r;
    r.kv = {.total_pages = 8, .used_pages = 2, .cached_pages = 1, .token_slots = 40, .empty_slots = 10};
    EXPECT_THAT(text_after({r}), HasSubstr("patchbay_kv_utilisation_ratio 0.25\n"));
    EXPECT_THAT(text_after({r}), HasSubstr("patchbay_kv_fragmentation_ratio 0.25\n"));
    EXPECT_THAT(text_after({r}), HasSubstr("patchbay_kv_pages{state=\"free\"} 5\n"));
}

TEST(ReportMetrics, TellSequencesSwappedFromThoseRecomputed) {
    StepReport r;
    r.preemption = {.preemptions = 3, .swapped_out = 1, .pages_to_host = 5, .swap_pages = 9, .used_swap_pages = 4};
    r.preemption.swap_fallbacks = {1, 0, 1};
    const std::string text = text_after({r});
    EXPECT_THAT(text, HasSubstr("patchbay_preemptions_total{how=\"recompute\"} 2\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_preemptions_total{how=\"swap\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_kv_swapped_pages_total{direction=\"out\"} 5\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_kv_swap_pages{state=\"free\"} 5\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_kv_swap_fallbacks_total{reason=\"unmeasured\"} 1\n"));
}

TEST(ReportMetrics, AddUpCountersAndShowWhatIsThereNow) {
    StepReport busy, calm;
    busy.queues = {.running_requests = 4, .waiting_requests = 3, .waiting_tokens = 90, .oldest_wait_ns = 500'000'000};
    calm.queues = {.running_requests = 1};
    for (StepReport* r : {&busy, &calm}) {
        r->work.admitted = 2;
        r->grammars = {.masks = 3, .mask_ns = 500'000'000, .compiled = 1, .refused = 2};
    }
    const std::string text = text_after({busy, calm});
    EXPECT_THAT(text, HasSubstr("patchbay_requests_admitted_total 4\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_requests_running 1\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_oldest_wait_seconds 0\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_grammar_masks_total 6\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_grammar_mask_seconds_total 1\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_grammars_total{outcome=\"refused\"} 4\n"));
}

TEST(ReportMetrics, CountTheTokensOfGraphsAndWhatWasCapturedAtLoad) {
    metrics::Metrics all;
    ReportMetrics part(all, rows_of_computing_steps(),
                       report_at_load(facts_of({}, {.count = 3, .bytes = 4096, .capture_ns = 2'000'000'000})));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_graphs 3\n"));
    StepReport r;
    r.work.scheduled_tokens = 5;
    r.graph = {.replayed = true, .miss = "", .size = 8, .padded_tokens = 3, .captured = 4, .bytes = 8192};
    part.on_step(r);
    EXPECT_THAT(all.text(), HasSubstr("patchbay_graphs 4\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_graph_tokens_total{kind=\"useful\"} 5\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_graph_tokens_total{kind=\"padded\"} 3\n"));
    EXPECT_THAT(all.text(), HasSubstr("patchbay_graph_capture_seconds_total 2\n"));
}

TEST(ReportMetrics, NameADraftModelsPassesOnlyWhereOneDrafts) {
    StepReport r;
    r.drafts = {.verified_sequences = 2, .drafted_tokens = 3, .accepted_tokens = 1, .length = 4, .passes = 2};
    r.drafts.pass_tokens = 9;
    r.drafts.drafted_at = {2, 1};
    r.drafts.accepted_at = {1};
    const std::string of_proposer = text_after({r}, rows_of_drafts(false));
    const std::string of_model = text_after({r}, rows_of_drafts(true));
    EXPECT_THAT(of_proposer, HasSubstr("patchbay_spec_sequences_total 2\n"));
    EXPECT_THAT(of_proposer, HasSubstr("patchbay_spec_drafted_tokens_total{position=\"2\"} 1\n"));
    EXPECT_THAT(of_proposer, HasSubstr("patchbay_spec_accepted_tokens_total{position=\"1\"} 1\n"));
    EXPECT_THAT(of_proposer, HasSubstr("patchbay_spec_draft_length 4\n"));
    EXPECT_THAT(of_proposer, Not(HasSubstr("patchbay_draft_model_passes_total 2\n")));
    EXPECT_THAT(of_model, HasSubstr("patchbay_draft_model_passes_total 2\n"));
    EXPECT_THAT(of_model, HasSubstr("patchbay_draft_model_tokens_total 9\n"));
}

TEST(StepMetrics, ObserveOnlyStepsThatComputed) {
    metrics::Metrics all;
    StepMetrics steps(all);
    StepReport r;
    r.sync_reason = "";
    r.end_ns = 3'000'000'000;
    r.kv.residencies_ns = {2'000'000'000};
    steps.on_step(r);
    r.work.scheduled_seqs = 1;
    r.work.scheduled_tokens = r.work.prefill_tokens = 5;
    steps.on_step(r);
    const std::string text = all.text();
    EXPECT_THAT(text, HasSubstr("patchbay_steps_total 2\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_step_seconds_count 1\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_step_seconds_sum 3\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_async_steps_total{depth=\"1\",reason=\"\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_kv_block_residency_seconds_sum 4\n"));
}

// "… depth 0: off, device, probation (of a swap), …"
TEST(StepMetrics, TheHelpOfWhatWaitedNamesEachReason) {
    std::string help;
    for (const metrics::Entry& e : metrics::parse_catalogue(metrics::catalogue_yaml()))
        if (e.name == "patchbay_async_steps_total") help = e.help;
    const std::string before = "depth 0: ";
    ASSERT_THAT(help, HasSubstr(before));
    std::istringstream parts(help.substr(help.find(before) + before.size()));
    std::vector<std::string> named;
    for (std::string part; std::getline(parts >> std::ws, part, ',');) named.push_back(part.substr(0, part.find(" (")));
    EXPECT_THAT(named, ::testing::UnorderedElementsAreArray(execution::sync_reason::kAll));
}

TEST(StepMetrics, CountDispatchesByReasonAndSize) {
    metrics::Metrics all;
    StepMetrics steps(all);
    StepReport r;
    r.work.scheduled_seqs = 1;
    r.graph = {.replayed = true, .miss = "", .size = 8};
    steps.on_step(r);
    r.graph = {.miss = "size"};
    steps.on_step(r);
    const std::string text = all.text();
    EXPECT_THAT(text, HasSubstr("patchbay_graph_dispatches_total{mode=\"FULL\",reason=\"\",size=\"8\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_graph_dispatches_total{mode=\"NONE\",reason=\"size\",size=\"0\"} 1\n"));
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
}  // namespace patchbay::engine::metrics_test
