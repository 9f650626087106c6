#include "engine/metrics/queue_metrics.hpp"

#include "engine/metrics/seconds.hpp"
#include "engine/step_report.hpp"

namespace patchbay::engine {

QueueMetrics::QueueMetrics(metrics::Metrics& m)
    : waiting_(m.gauge("patchbay_requests_waiting")), waiting_tokens_(m.gauge("patchbay_waiting_tokens")),
      oldest_wait_(m.gauge("patchbay_oldest_wait_seconds")), running_(m.gauge("patchbay_requests_running")),
      admitted_(m.counter("patchbay_requests_admitted_total")) {}

QueueMetrics::~QueueMetrics() {
    for (prometheus::Gauge* now : {&waiting_, &waiting_tokens_, &oldest_wait_, &running_}) now->Set(0);
}

void QueueMetrics::on_step(const QueueReport& r, uint32_t admitted) {
    waiting_.Set(r.waiting_requests);
    waiting_tokens_.Set(static_cast<double>(r.waiting_tokens));
    oldest_wait_.Set(seconds(r.oldest_wait_ns));
    running_.Set(r.running_requests);
    admitted_.Increment(admitted);
}

}  // namespace patchbay::engine
