#include "engine/metrics/step_metrics.hpp"

#include <string>

#include "engine/metrics/seconds.hpp"
#include "engine/step_report.hpp"

namespace patchbay::engine {

StepMetrics::StepMetrics(metrics::Metrics& m)
    : all_(m), steps_(m.counter("patchbay_steps_total")), seconds_(m.histogram("patchbay_step_seconds")),
      tokens_(m.histogram("patchbay_step_tokens")), sequences_(m.histogram("patchbay_step_sequences")),
      residency_(m.histogram("patchbay_kv_block_residency_seconds")) {}

void StepMetrics::on_step(const StepReport& r) {
    steps_.Increment();
    for (const uint64_t ns : r.kv.residencies_ns) residency_.Observe(seconds(ns));
    if (r.work.scheduled_seqs == 0) return; // nothing was dispatched
    seconds_.Observe(seconds(since(r.start_ns, r.end_ns)));
    tokens_.Observe(r.work.scheduled_tokens);
    sequences_.Observe(r.work.scheduled_seqs);
    by_sync_reason(r.sync_reason).Increment();
    dispatches(r.graph).Increment();
}

prometheus::Counter& StepMetrics::by_sync_reason(std::string_view reason) {
    prometheus::Counter*& counter = by_sync_reason_[reason];
    if (!counter)
        counter = &all_.counter("patchbay_async_steps_total",
                                {{"depth", reason.empty() ? "1" : "0"}, {"reason", std::string(reason)}});
    return *counter;
}

prometheus::Counter& StepMetrics::dispatches(const GraphReport& r) {
    prometheus::Counter*& counter = dispatches_[{r.miss, r.size}];
    if (!counter)
        counter = &all_.counter("patchbay_graph_dispatches_total", {{"mode", r.replayed ? "FULL" : "NONE"},
                                                                    {"size", std::to_string(r.size)},
                                                                    {"reason", std::string(r.miss)}});
    return *counter;
}

}  // namespace patchbay::engine
