#include "serve/engine_observers.hpp"

#include <utility>

#include "engine/swap/swap_slot.hpp"

namespace patchbay::serve {

EngineObservers::EngineObservers(EngineObserverOptions options, metrics::Metrics& metrics,
                                 const engine::EngineFacts& facts, const std::string& served_name)
    : options_(std::move(options)), all_metrics_(metrics), journal_(facts.plugins, options_.configuration),
      tenant_tokens_(metrics) {
    watch(facts, served_name);
    if (!options_.ledger) return;
    options_.ledger->first(facts.plugins);
    count_restarts(facts.plugins);
}

// From 0 on: of a series that begins at 1 no rate sees the first.
void EngineObservers::count_restarts(const std::vector<host::Identity>& slots) {
    const auto restarts = [&](const std::string& kind) -> prometheus::Counter& {
        return all_metrics_.counter("patchbay_restarts_total", {{"kind", kind}});
    };
    for (const host::Identity& slot : slots)
        if (engine::swap_slot(slot.kind)) restarts(slot.kind);
    for (const Culprit& culprit : options_.ledger->culprits()) restarts(culprit.kind).Increment();
}

void EngineObservers::watch(const engine::EngineFacts& facts, const std::string& served_name) {
    if (engine_metrics_) engine_metrics_->replaced_by(facts);
    engine_metrics_.reset(); // what is about the present ends with it
    engine_metrics_.emplace(all_metrics_, facts, options_.version);
    vllm_metrics_.reset();
    if (options_.vllm_metrics) vllm_metrics_.emplace(all_metrics_, served_name, facts);
}

void EngineObservers::on_request(engine::RequestId id, const engine::Request& r) {
    engine_metrics_->on_request(id, r.arrival_ns, static_cast<uint32_t>(r.prompt.size()), r.sampling.n);
    tenant_tokens_.on_request(id, r);
    if (vllm_metrics_) vllm_metrics_->on_request(id, r);
}

void EngineObservers::on_output(const engine::RequestOutput& out) {
    engine_metrics_->on_output(out);
    tenant_tokens_.on_output(out);
    if (vllm_metrics_) vllm_metrics_->on_output(out);
}

void EngineObservers::on_end(const engine::StepReport& report) {
    engine_metrics_->on_end(report);
    journal_.on_step(report);
    if (options_.ledger)
        for (const host::SwapRecord& r : report.swaps) options_.ledger->settled(r);
    if (vllm_metrics_) vllm_metrics_->on_step(report);
}

}  // namespace patchbay::serve
