#include "serve/engine_observers.hpp"

#include <utility>

namespace patchbay::serve {

EngineObservers::EngineObservers(EngineObserverOptions options, metrics::Metrics& metrics,
                                 const engine::EngineFacts& facts, const std::string& served_name)
    : options_(std::move(options)), all_metrics_(metrics), journal_(facts.plugins), tenant_tokens_(metrics) {
    watch(facts, served_name);
    if (options_.ledger) options_.ledger->first(facts.plugins);
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
