#include "engine/metrics/report_metrics.hpp"

#include "engine/facts.hpp"
#include "engine/metrics/seconds.hpp"
#include "engine/step_report.hpp"

namespace patchbay::engine {
namespace {

using R = const StepReport&;

double number(uint64_t n) { return static_cast<double>(n); }
double ratio(uint64_t part, uint64_t all) { return all > 0 ? number(part) / number(all) : 0; }

}  // namespace

ReportRows rows_of_steps() {
    ReportRows rows;
    rows.counters = {
        {"patchbay_requests_admitted_total", {}, [](R r) { return number(r.work.admitted); }},
        {"patchbay_scheduled_tokens_total", {{"kind", "prefill"}}, [](R r) { return number(r.work.prefill_tokens); }},
        {"patchbay_scheduled_tokens_total", {{"kind", "decode"}}, [](R r) { return number(r.work.decode_tokens); }},
        {"patchbay_trimmed_items_total", {}, [](R r) { return number(r.work.trimmed); }},
        {"patchbay_forked_sequences_total", {}, [](R r) { return number(r.work.forked); }},
        {"patchbay_broadcast_bytes_total", {}, [](R r) { return number(r.broadcast_bytes); }},
        {"patchbay_broadcast_seconds_total", {}, [](R r) { return seconds(r.broadcast_ns); }},
        {"patchbay_kv_evictions_total", {}, [](R r) { return number(r.kv.evicted_pages); }},
        {"patchbay_prefix_query_tokens_total", {}, [](R r) { return number(r.kv.prefix_query_tokens); }},
        {"patchbay_prefix_hit_tokens_total", {}, [](R r) { return number(r.kv.prefix_hit_tokens); }},
        {"patchbay_kv_page_copies_total", {}, [](R r) { return number(r.kv.copied_pages); }},
        {"patchbay_preemptions_total", {{"how", "recompute"}},
         [](R r) { return number(r.preemption.preemptions - r.preemption.swapped_out); }},
        {"patchbay_preemptions_total", {{"how", "swap"}}, [](R r) { return number(r.preemption.swapped_out); }},
        {"patchbay_preempted_tokens_total", {}, [](R r) { return number(r.preemption.preempted_tokens); }},
        {"patchbay_kv_swapped_pages_total", {{"direction", "out"}},
         [](R r) { return number(r.preemption.pages_to_host); }},
        {"patchbay_kv_swapped_pages_total", {{"direction", "in"}},
         [](R r) { return number(r.preemption.pages_to_device); }},
        {"patchbay_grammars_total", {{"outcome", "compiled"}}, [](R r) { return number(r.grammars.compiled); }},
        {"patchbay_grammars_total", {{"outcome", "cached"}}, [](R r) { return number(r.grammars.cached); }},
        {"patchbay_grammars_total", {{"outcome", "refused"}}, [](R r) { return number(r.grammars.refused); }},
        {"patchbay_grammar_compile_seconds_total", {}, [](R r) { return seconds(r.grammars.compile_ns); }},
        {"patchbay_grammar_masks_total", {}, [](R r) { return number(r.grammars.masks); }},
        {"patchbay_grammar_mask_seconds_total", {}, [](R r) { return seconds(r.grammars.mask_ns); }},
        {"patchbay_grammar_cut_drafts_total", {}, [](R r) { return number(r.grammars.cut_drafts); }}};
    for (size_t i = 0; i < kPhaseCount; ++i)
        rows.counters.push_back({"patchbay_step_phase_seconds_total",
                                 {{"phase", std::string(name_of(static_cast<Phase>(i)))}},
                                 [i](R r) { return seconds(r.phase_ns[i]); }});
    for (size_t i = 0; i < kSwapFallbacks; ++i)
        rows.counters.push_back({"patchbay_kv_swap_fallbacks_total",
                                 {{"reason", std::string(name_of(static_cast<SwapFallback>(i)))}},
                                 [i](R r) { return number(r.preemption.swap_fallbacks[i]); }});
    rows.gauges = {
        {"patchbay_requests_waiting", {}, [](R r) { return number(r.queues.waiting_requests); }},
        {"patchbay_requests_running", {}, [](R r) { return number(r.queues.running_requests); }},
        {"patchbay_waiting_tokens", {}, [](R r) { return number(r.queues.waiting_tokens); }},
        {"patchbay_oldest_wait_seconds", {}, [](R r) { return seconds(r.queues.oldest_wait_ns); }},
        {"patchbay_kv_pages", {{"state", "used"}}, [](R r) { return number(r.kv.used_pages); }},
        {"patchbay_kv_pages", {{"state", "cached"}}, [](R r) { return number(r.kv.cached_pages); }},
        {"patchbay_kv_pages", {{"state", "free"}},
         [](R r) { return number(r.kv.total_pages - r.kv.used_pages - r.kv.cached_pages); }},
        {"patchbay_kv_utilisation_ratio", {}, [](R r) { return ratio(r.kv.used_pages, r.kv.total_pages); }},
        {"patchbay_kv_fragmentation_ratio", {}, [](R r) { return ratio(r.kv.empty_slots, r.kv.token_slots); }},
        {"patchbay_kv_watermark_ratio", {}, [](R r) { return r.kv.watermark; }},
        {"patchbay_kv_swap_pages", {{"state", "used"}}, [](R r) { return number(r.preemption.used_swap_pages); }},
        {"patchbay_kv_swap_pages", {{"state", "free"}},
         [](R r) { return number(r.preemption.swap_pages - r.preemption.used_swap_pages); }},
        {"patchbay_kv_swap_page_seconds", {}, [](R r) { return r.preemption.host_page_ns * 1e-9; }},
        {"patchbay_computed_token_seconds", {}, [](R r) { return r.preemption.token_ns * 1e-9; }}};
    constexpr std::array<const char*, kv::kGroupKinds> kKinds{"full", "sliding", "recurrent"};
    for (size_t kind = 0; kind < kKinds.size(); ++kind)
        rows.gauges.push_back({"patchbay_kv_group_pages", {{"kind", kKinds[kind]}},
                               [kind](R r) { return number(r.kv.group_pages[kind]); }});
    return rows;
}

ReportRows rows_of_computing_steps() {
    return {{{"patchbay_graph_tokens_total", {{"kind", "useful"}}, [](R r) { return number(r.work.scheduled_tokens); }},
             {"patchbay_graph_tokens_total", {{"kind", "padded"}}, [](R r) { return number(r.graph.padded_tokens); }},
             {"patchbay_graph_capture_seconds_total", {}, [](R r) { return seconds(r.graph.capture_ns); }}},
            {{"patchbay_graphs", {}, [](R r) { return number(r.graph.captured); }},
             {"patchbay_graph_bytes", {}, [](R r) { return number(r.graph.bytes); }}}};
}

ReportRows rows_of_drafts(bool by_draft_model) {
    ReportRows rows;
    rows.gauges = {{"patchbay_spec_draft_length", {}, [](R r) { return number(r.drafts.length); }}};
    rows.counters = {
        {"patchbay_spec_sequences_total", {}, [](R r) { return number(r.drafts.verified_sequences); }},
        {"patchbay_spec_branches_total", {{"outcome", "verified"}}, [](R r) { return number(r.drafts.branches); }},
        {"patchbay_spec_branches_total", {{"outcome", "dropped"}},
         [](R r) { return number(r.drafts.dropped_branches); }},
        {"patchbay_spec_branch_accepted_tokens_total", {}, [](R r) { return number(r.drafts.branch_tokens); }}};
    for (size_t i = 0; i < DraftReport::kPositions; ++i) {
        const metrics::Labels position{{"position", std::to_string(i + 1)}};
        rows.counters.push_back({"patchbay_spec_drafted_tokens_total", position,
                                 [i](R r) { return number(r.drafts.drafted_at[i]); }});
        rows.counters.push_back({"patchbay_spec_accepted_tokens_total", position,
                                 [i](R r) { return number(r.drafts.accepted_at[i]); }});
    }
    if (!by_draft_model) return rows;
    for (const ReportRow& row : std::initializer_list<ReportRow>{
             {"patchbay_draft_model_passes_total", {}, [](R r) { return number(r.drafts.passes); }},
             {"patchbay_draft_model_tokens_total", {}, [](R r) { return number(r.drafts.pass_tokens); }},
             {"patchbay_draft_model_seconds_total", {}, [](R r) { return seconds(r.drafts.pass_ns); }}})
        rows.counters.push_back(row);
    return rows;
}

StepReport report_at_load(const EngineFacts& facts) {
    StepReport r;
    r.kv.total_pages = facts.kv.num_blocks;
    r.kv.watermark = facts.kv.watermark;
    r.preemption.swap_pages = facts.kv.swap_pages;
    r.graph.captured = facts.graphs.count;
    r.graph.bytes = facts.graphs.bytes;
    r.graph.capture_ns = facts.graphs.capture_ns;
    return r;
}

ReportMetrics::ReportMetrics(metrics::Metrics& m, ReportRows rows, const StepReport& at_load) {
    for (ReportRow& row : rows.counters)
        counters_.emplace_back(&m.counter(row.name, row.labels), std::move(row.value));
    for (ReportRow& row : rows.gauges) gauges_.emplace_back(&m.gauge(row.name, row.labels), std::move(row.value));
    on_step(at_load);
}

ReportMetrics::~ReportMetrics() {
    for (const auto& [gauge, value] : gauges_) gauge->Set(0);
}

void ReportMetrics::on_step(const StepReport& r) {
    for (const auto& [counter, value] : counters_) counter->Increment(value(r));
    for (const auto& [gauge, value] : gauges_) gauge->Set(value(r));
}

}  // namespace patchbay::engine
