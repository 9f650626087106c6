#include "engine/engine_metrics.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <vector>

#include "engine/kv_metrics.hpp"
#include "engine/slot_metrics.hpp"

namespace patchbay::engine {

namespace {

struct Timeline { // of one output of a request that is under way
    uint64_t arrival_ns, last_ns, first_ns;
    uint32_t prompt_tokens, output_tokens;
    bool ended;
};

uint64_t since(uint64_t from, uint64_t to) { return to > from ? to - from : 0; }

}  // namespace

struct EngineMetrics::Series {
    // Of a simulation: in virtual time, which every series says, as rates over wall time mean nothing.
    Series(metrics::Metrics& m, const EngineFacts& facts)
        : in_virtual_time(facts.simulated ? m.labelled({{"time", "virtual"}}) : nullptr),
          all(in_virtual_time ? *in_virtual_time : m), slots(all, facts.plugins) {}

    prometheus::Counter& dispatches(const StepReport& r) {
        prometheus::Counter*& counter = dispatched[{r.graph_miss, r.graph_size}];
        if (!counter)
            counter = &all.counter("patchbay_graph_dispatches_total", {{"mode", r.graph_replayed ? "FULL" : "NONE"},
                                                                       {"size", std::to_string(r.graph_size)},
                                                                       {"reason", std::string(r.graph_miss)}});
        return *counter;
    }

    prometheus::Counter& sync_reason(const StepReport& r) {
        prometheus::Counter*& counter = turns[r.sync_reason];
        if (!counter)
            counter = &all.counter("patchbay_async_steps_total", {{"depth", r.sync_reason.empty() ? "1" : "0"},
                                                                  {"reason", std::string(r.sync_reason)}});
        return *counter;
    }

    const std::unique_ptr<metrics::Metrics> in_virtual_time;
    metrics::Metrics& all;
    std::map<std::string_view, prometheus::Counter*> turns; // by reason, a static string
    // By reason, a static string, and size.
    std::map<std::pair<std::string_view, uint32_t>, prometheus::Counter*> dispatched;
    std::unordered_map<RequestId, std::vector<Timeline>> requests; // by index

    prometheus::Gauge& waiting = all.gauge("patchbay_requests_waiting");
    prometheus::Gauge& waiting_tokens = all.gauge("patchbay_waiting_tokens");
    prometheus::Gauge& oldest_wait = all.gauge("patchbay_oldest_wait_seconds");
    prometheus::Gauge& running = all.gauge("patchbay_requests_running");
    prometheus::Counter& admitted = all.counter("patchbay_requests_admitted_total");
    KvMetrics kv{all};
    SlotMetrics slots;
    prometheus::Gauge& used = all.gauge("patchbay_kv_pages", {{"state", "used"}});
    prometheus::Gauge& cached = all.gauge("patchbay_kv_pages", {{"state", "cached"}});
    prometheus::Gauge& free = all.gauge("patchbay_kv_pages", {{"state", "free"}});
    std::array<prometheus::Gauge*, kv::kGroupKinds> group_pages{
        &all.gauge("patchbay_kv_group_pages", {{"kind", "full"}}),
        &all.gauge("patchbay_kv_group_pages", {{"kind", "sliding"}}),
        &all.gauge("patchbay_kv_group_pages", {{"kind", "recurrent"}})};
    prometheus::Gauge& utilisation = all.gauge("patchbay_kv_utilisation_ratio");
    prometheus::Counter& evictions = all.counter("patchbay_kv_evictions_total");
    prometheus::Counter& prefix_queries = all.counter("patchbay_prefix_query_tokens_total");
    prometheus::Counter& prefix_hits = all.counter("patchbay_prefix_hit_tokens_total");
    prometheus::Counter& steps = all.counter("patchbay_steps_total");
    prometheus::Histogram& step_seconds = all.histogram("patchbay_step_seconds");
    prometheus::Counter& prefill = all.counter("patchbay_scheduled_tokens_total", {{"kind", "prefill"}});
    prometheus::Counter& decode = all.counter("patchbay_scheduled_tokens_total", {{"kind", "decode"}});
    prometheus::Histogram& step_tokens = all.histogram("patchbay_step_tokens");
    prometheus::Histogram& step_sequences = all.histogram("patchbay_step_sequences");
    prometheus::Counter& trimmed = all.counter("patchbay_trimmed_items_total");
    prometheus::Counter& forked = all.counter("patchbay_forked_sequences_total");
    prometheus::Counter& copied_pages = all.counter("patchbay_kv_page_copies_total");
    prometheus::Counter& useful = all.counter("patchbay_graph_tokens_total", {{"kind", "useful"}});
    prometheus::Counter& padded = all.counter("patchbay_graph_tokens_total", {{"kind", "padded"}});
    prometheus::Counter& capture = all.counter("patchbay_graph_capture_seconds_total");
    prometheus::Gauge& graphs = all.gauge("patchbay_graphs");
    prometheus::Gauge& graph_bytes = all.gauge("patchbay_graph_bytes");
    prometheus::Counter& grammars_compiled = all.counter("patchbay_grammars_total", {{"outcome", "compiled"}});
    prometheus::Counter& grammars_cached = all.counter("patchbay_grammars_total", {{"outcome", "cached"}});
    prometheus::Counter& grammars_refused = all.counter("patchbay_grammars_total", {{"outcome", "refused"}});
    prometheus::Counter& grammar_compile = all.counter("patchbay_grammar_compile_seconds_total");
    prometheus::Counter& grammar_masks = all.counter("patchbay_grammar_masks_total");
    prometheus::Counter& grammar_mask_time = all.counter("patchbay_grammar_mask_seconds_total");
    prometheus::Counter& cut_drafts = all.counter("patchbay_grammar_cut_drafts_total");
    prometheus::Counter& broadcast_bytes = all.counter("patchbay_broadcast_bytes_total");
    prometheus::Counter& broadcast_seconds = all.counter("patchbay_broadcast_seconds_total");
    std::vector<prometheus::Gauge*> ranks; // by rank; none of an engine that is alone
    prometheus::Histogram& ttft = all.histogram("patchbay_time_to_first_token_seconds");
    prometheus::Histogram& itl = all.histogram("patchbay_inter_token_latency_seconds");
    prometheus::Histogram& tpot = all.histogram("patchbay_time_per_output_token_seconds");
    prometheus::Histogram& e2e = all.histogram("patchbay_e2e_request_latency_seconds");
    prometheus::Histogram& queue = all.histogram("patchbay_request_queue_seconds");
    prometheus::Histogram& prompt_tokens = all.histogram("patchbay_request_prompt_tokens");
    prometheus::Histogram& output_tokens = all.histogram("patchbay_request_generation_tokens");
    prometheus::Histogram& entropy = all.histogram("patchbay_logits_entropy_nats");
    prometheus::Histogram& max_logit = all.histogram("patchbay_logits_max");
    prometheus::Histogram& first_share = all.histogram("patchbay_logits_first_share_ratio");
    prometheus::Counter& generated = all.counter("patchbay_generation_tokens_total");

    std::array<prometheus::Counter*, kPhaseCount> phases{};
    std::array<prometheus::Counter*, StepReport::kDraftPositions> drafted{}, accepted{};
    prometheus::Gauge* draft_length = nullptr;
    prometheus::Counter *branches = nullptr, *dropped_branches = nullptr, *branch_tokens = nullptr;
    prometheus::Counter *draft_passes = nullptr, *draft_tokens = nullptr, *draft_seconds = nullptr;
    std::array<prometheus::Counter*, kFinishReasons> finished{}, without_token{}; // by FinishReason
};

EngineMetrics::EngineMetrics(metrics::Metrics& m, const EngineFacts& facts, const std::string& version)
    : series_(std::make_unique<Series>(m, facts)) {
    Series& s = *series_;
    metrics::Metrics& all = s.all;
    m.gauge("patchbay_build_info", {{"version", version}}).Set(1);
    s.capture.Increment(seconds(facts.graph_capture_ns));
    s.graphs.Set(facts.graphs);
    s.graph_bytes.Set(static_cast<double>(facts.graph_bytes));
    for (size_t i = 0; i < kPhaseCount; ++i)
        s.phases[i] =
            &all.counter("patchbay_step_phase_seconds_total", {{"phase", std::string(name_of(static_cast<Phase>(i)))}});
    for (size_t i = 1; i < s.finished.size(); ++i)
        s.finished[i] = &all.counter("patchbay_requests_finished_total",
                                   {{"reason", std::string(name_of(static_cast<FinishReason>(i)))}});
    for (const FinishReason reason : {FinishReason::kAbort, FinishReason::kError})
        s.without_token[static_cast<size_t>(reason)] =
            &all.counter("patchbay_requests_without_token_total", {{"reason", std::string(name_of(reason))}});
    for (size_t r = 0; facts.ranks.size() > 1 && r < facts.ranks.size(); ++r) {
        s.ranks.push_back(&all.gauge("patchbay_rank_up", {{"rank", std::to_string(r)}}));
        s.ranks.back()->Set(1);
    }
    for (const host::Identity& p : facts.plugins) {
        if (p.kind == "proposer") {
            s.draft_length = &all.gauge("patchbay_spec_draft_length");
            s.branches = &all.counter("patchbay_spec_branches_total", {{"outcome", "verified"}});
            s.dropped_branches = &all.counter("patchbay_spec_branches_total", {{"outcome", "dropped"}});
            s.branch_tokens = &all.counter("patchbay_spec_branch_accepted_tokens_total");
            for (size_t i = 0; i < s.drafted.size(); ++i) {
                const metrics::Labels position{{"position", std::to_string(i + 1)}};
                s.drafted[i] = &all.counter("patchbay_spec_drafted_tokens_total", position);
                s.accepted[i] = &all.counter("patchbay_spec_accepted_tokens_total", position);
            }
            if (facts.draft_model.empty()) continue;
            s.draft_passes = &all.counter("patchbay_draft_model_passes_total");
            s.draft_tokens = &all.counter("patchbay_draft_model_tokens_total");
            s.draft_seconds = &all.counter("patchbay_draft_model_seconds_total");
        }
    }
}

// What is about the present ends with the engine; counters and histograms go on with the next one.
EngineMetrics::~EngineMetrics() {
    Series& s = *series_;
    for (prometheus::Gauge* rank : s.ranks) rank->Set(0);
    for (prometheus::Gauge* now :
         {&s.waiting, &s.waiting_tokens, &s.oldest_wait, &s.running, &s.used, &s.cached, &s.free, &s.utilisation,
          &s.graphs, &s.graph_bytes, s.draft_length})
        if (now) now->Set(0);
    for (prometheus::Gauge* pages : s.group_pages) pages->Set(0);
}

void EngineMetrics::on_request(RequestId id, uint64_t arrival_ns, uint32_t prompt_tokens, uint32_t n) {
    series_->requests[id].assign(n, {arrival_ns, 0, 0, prompt_tokens, 0, false});
}

void EngineMetrics::on_output(const RequestOutput& out) {
    Series& s = *series_;
    const auto at = s.requests.find(out.id);
    if (at == s.requests.end()) return;
    Timeline& t = at->second.at(out.index);
    s.generated.Increment(static_cast<double>(out.tokens.size()));
    const bool whole = t.output_tokens == 0 && out.finish != FinishReason::kNone; // it was chosen among others
    if (!out.tokens.empty()) {
        if (t.output_tokens == 0) {
            t.first_ns = out.time_ns;
            s.ttft.Observe(seconds(since(t.arrival_ns, out.time_ns)));
        } else {
            s.itl.Observe(seconds(since(t.last_ns, out.time_ns)));
        }
        for (size_t i = 1; i < out.tokens.size() && !whole; ++i) s.itl.Observe(0); // accepted drafts come at once
        t.last_ns = out.time_ns;
        t.output_tokens += static_cast<uint32_t>(out.tokens.size());
    }
    if (out.finish == FinishReason::kNone) return;
    s.finished[static_cast<size_t>(out.finish)]->Increment();
    if (is_complete(out.finish)) s.e2e.Observe(seconds(since(t.arrival_ns, out.time_ns)));
    else if (t.output_tokens == 0) s.without_token[static_cast<size_t>(out.finish)]->Increment();
    if (out.first_scheduled_ns > 0) s.queue.Observe(seconds(since(t.arrival_ns, out.first_scheduled_ns)));
    if (t.output_tokens > 1 && !whole) s.tpot.Observe(seconds(since(t.first_ns, t.last_ns)) / (t.output_tokens - 1));
    if (out.logits) {
        s.entropy.Observe(out.logits->entropy);
        s.max_logit.Observe(out.logits->max_logit);
        s.first_share.Observe(out.logits->first_share);
    }
    s.prompt_tokens.Observe(t.prompt_tokens);
    s.output_tokens.Observe(t.output_tokens);
    t.ended = true;
    if (std::ranges::all_of(at->second, &Timeline::ended)) s.requests.erase(at);
}

void EngineMetrics::on_step(const StepReport& r) {
    Series& s = *series_;
    s.slots.on_step(r);
    s.waiting.Set(r.waiting_requests);
    s.broadcast_bytes.Increment(static_cast<double>(r.broadcast_bytes));
    s.broadcast_seconds.Increment(seconds(r.broadcast_ns));
    s.grammars_compiled.Increment(static_cast<double>(r.grammars_compiled));
    s.grammars_cached.Increment(static_cast<double>(r.grammars_cached));
    s.grammars_refused.Increment(static_cast<double>(r.grammars_refused));
    s.grammar_compile.Increment(seconds(r.grammar_compile_ns));
    s.grammar_masks.Increment(r.grammar_masks);
    s.grammar_mask_time.Increment(seconds(r.grammar_mask_ns));
    s.cut_drafts.Increment(r.cut_drafts);
    s.waiting_tokens.Set(static_cast<double>(r.waiting_tokens));
    s.oldest_wait.Set(seconds(r.oldest_wait_ns));
    s.running.Set(r.running_requests);
    s.admitted.Increment(r.admitted);
    s.kv.on_step(r);
    s.used.Set(r.used_pages);
    s.cached.Set(r.cached_pages);
    s.free.Set(r.total_pages - r.used_pages - r.cached_pages);
    for (size_t kind = 0; kind < kv::kGroupKinds; ++kind) s.group_pages[kind]->Set(r.group_pages[kind]);
    s.utilisation.Set(r.total_pages ? static_cast<double>(r.used_pages) / r.total_pages : 0);
    s.evictions.Increment(r.evicted_pages);
    s.prefix_queries.Increment(static_cast<double>(r.prefix_query_tokens));
    s.prefix_hits.Increment(static_cast<double>(r.prefix_hit_tokens));
    s.steps.Increment();
    for (size_t i = 0; i < kPhaseCount; ++i) s.phases[i]->Increment(seconds(r.phase_ns[i]));
    s.trimmed.Increment(r.trimmed);
    s.forked.Increment(r.forked);
    s.copied_pages.Increment(r.copied_pages);
    if (r.scheduled_seqs == 0) return;
    s.step_seconds.Observe(seconds(since(r.start_ns, r.end_ns)));
    s.prefill.Increment(r.prefill_tokens);
    s.decode.Increment(r.decode_tokens);
    s.step_tokens.Observe(r.scheduled_tokens);
    s.step_sequences.Observe(r.scheduled_seqs);
    s.useful.Increment(r.scheduled_tokens);
    s.sync_reason(r).Increment();
    s.padded.Increment(r.padded_tokens);
    s.dispatches(r).Increment();
    s.capture.Increment(seconds(r.graph_capture_ns));
    s.graphs.Set(r.graphs);
    s.graph_bytes.Set(static_cast<double>(r.graph_bytes));
    if (!s.draft_length) return;
    s.draft_length->Set(r.draft_length);
    s.branches->Increment(r.branches);
    s.dropped_branches->Increment(r.dropped_branches);
    s.branch_tokens->Increment(r.branch_tokens);
    for (size_t i = 0; i < s.drafted.size(); ++i) {
        s.drafted[i]->Increment(r.drafted_at[i]);
        s.accepted[i]->Increment(r.accepted_at[i]);
    }
    if (!s.draft_passes) return;
    s.draft_passes->Increment(r.draft_passes);
    s.draft_tokens->Increment(r.draft_pass_tokens);
    s.draft_seconds->Increment(seconds(r.draft_pass_ns));
}

}  // namespace patchbay::engine
