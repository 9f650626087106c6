#include "engine/metrics/request_metrics.hpp"

#include <algorithm>
#include <string>

#include "engine/metrics/seconds.hpp"

namespace patchbay::engine {

RequestMetrics::Latencies::Latencies(metrics::Metrics& m)
    : ttft(m.histogram("patchbay_time_to_first_token_seconds")),
      itl(m.histogram("patchbay_inter_token_latency_seconds")),
      tpot(m.histogram("patchbay_time_per_output_token_seconds")),
      e2e(m.histogram("patchbay_e2e_request_latency_seconds")), queue(m.histogram("patchbay_request_queue_seconds")) {}

RequestMetrics::LogitsSeries::LogitsSeries(metrics::Metrics& m)
    : entropy(m.histogram("patchbay_logits_entropy_nats")), max_logit(m.histogram("patchbay_logits_max")),
      first_share(m.histogram("patchbay_logits_first_share_ratio")) {}

RequestMetrics::RequestMetrics(metrics::Metrics& m)
    : latencies_(m), logits_(m), prompt_tokens_(m.histogram("patchbay_request_prompt_tokens")),
      output_tokens_(m.histogram("patchbay_request_generation_tokens")),
      generated_(m.counter("patchbay_generation_tokens_total")) {
    const auto labels = [](FinishReason reason) { return metrics::Labels{{"reason", std::string(name_of(reason))}}; };
    for (size_t i = 1; i < finished_.size(); ++i)
        finished_[i] = &m.counter("patchbay_requests_finished_total", labels(static_cast<FinishReason>(i)));
    for (const FinishReason reason : {FinishReason::kAbort, FinishReason::kError})
        without_token_[static_cast<size_t>(reason)] =
            &m.counter("patchbay_requests_without_token_total", labels(reason));
}

void RequestMetrics::on_request(RequestId id, uint64_t arrival_ns, uint32_t prompt_tokens, uint32_t n) {
    under_way_[id].assign(n, {arrival_ns, 0, 0, prompt_tokens, 0, false});
}

void RequestMetrics::on_output(const RequestOutput& out) {
    const auto at = under_way_.find(out.id);
    if (at == under_way_.end()) return;
    Timeline& t = at->second.at(out.index);
    const bool ends = out.finish != FinishReason::kNone;
    const Arrived how = t.output_tokens == 0 && ends ? Arrived::kWhole : Arrived::kAsStream;
    generated_.Increment(static_cast<double>(out.tokens.size()));
    if (!out.tokens.empty()) on_tokens(t, out, how);
    if (!ends) return;
    on_end(t, out, how);
    t.ended = true;
    if (std::ranges::all_of(at->second, &Timeline::ended)) under_way_.erase(at);
}

void RequestMetrics::on_tokens(Timeline& t, const RequestOutput& out, Arrived how) {
    if (t.output_tokens == 0) {
        t.first_ns = out.time_ns;
        latencies_.ttft.Observe(seconds(since(t.arrival_ns, out.time_ns)));
    } else {
        latencies_.itl.Observe(seconds(since(t.last_ns, out.time_ns)));
    }
    for (size_t i = 1; i < out.tokens.size() && how == Arrived::kAsStream; ++i)
        latencies_.itl.Observe(0); // accepted drafts come at once
    t.last_ns = out.time_ns;
    t.output_tokens += static_cast<uint32_t>(out.tokens.size());
}

void RequestMetrics::on_end(const Timeline& t, const RequestOutput& out, Arrived how) {
    const auto reason = static_cast<size_t>(out.finish);
    finished_[reason]->Increment();
    if (is_complete(out.finish)) latencies_.e2e.Observe(seconds(since(t.arrival_ns, out.time_ns)));
    else if (t.output_tokens == 0) without_token_[reason]->Increment();
    const bool scheduled = out.first_scheduled_ns > 0 || t.output_tokens > 0; // a virtual clock begins at 0
    if (scheduled) latencies_.queue.Observe(seconds(since(t.arrival_ns, out.first_scheduled_ns)));
    if (t.output_tokens > 1 && how == Arrived::kAsStream)
        latencies_.tpot.Observe(seconds(since(t.first_ns, t.last_ns)) / (t.output_tokens - 1));
    if (out.logits) {
        logits_.entropy.Observe(out.logits->entropy);
        logits_.max_logit.Observe(out.logits->max_logit);
        logits_.first_share.Observe(out.logits->first_share);
    }
    prompt_tokens_.Observe(t.prompt_tokens);
    output_tokens_.Observe(t.output_tokens);
}

}  // namespace patchbay::engine
