#include "engine/metrics/graph_metrics.hpp"

#include <string>

#include "engine/facts.hpp"
#include "engine/metrics/seconds.hpp"
#include "engine/step_report.hpp"

namespace patchbay::engine {

GraphMetrics::GraphMetrics(metrics::Metrics& m, const GraphFacts& at_load)
    : all_(m), useful_(m.counter("patchbay_graph_tokens_total", {{"kind", "useful"}})),
      padded_(m.counter("patchbay_graph_tokens_total", {{"kind", "padded"}})),
      capture_(m.counter("patchbay_graph_capture_seconds_total")), graphs_(m.gauge("patchbay_graphs")),
      bytes_(m.gauge("patchbay_graph_bytes")) {
    capture_.Increment(seconds(at_load.capture_ns));
    graphs_.Set(at_load.count);
    bytes_.Set(static_cast<double>(at_load.bytes));
}

GraphMetrics::~GraphMetrics() {
    graphs_.Set(0);
    bytes_.Set(0);
}

void GraphMetrics::on_step(const GraphReport& r, uint32_t scheduled_tokens) {
    useful_.Increment(scheduled_tokens);
    padded_.Increment(r.padded_tokens);
    dispatches(r).Increment();
    capture_.Increment(seconds(r.capture_ns));
    graphs_.Set(r.captured);
    bytes_.Set(static_cast<double>(r.bytes));
}

prometheus::Counter& GraphMetrics::dispatches(const GraphReport& r) {
    prometheus::Counter*& counter = dispatches_[{r.miss, r.size}];
    if (!counter)
        counter = &all_.counter("patchbay_graph_dispatches_total", {{"mode", r.replayed ? "FULL" : "NONE"},
                                                                    {"size", std::to_string(r.size)},
                                                                    {"reason", std::string(r.miss)}});
    return *counter;
}

}  // namespace patchbay::engine
