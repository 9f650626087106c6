// Metrics of the queues: who waits, who runs. Part of EngineMetrics.
#pragma once
#include "metrics/catalogue.hpp"

namespace patchbay::engine {

struct QueueReport;

class QueueMetrics {
  public:
    explicit QueueMetrics(metrics::Metrics&);
    ~QueueMetrics(); // what is about the present ends with the engine
    void on_step(const QueueReport&, uint32_t admitted);

  private:
    prometheus::Gauge &waiting_, &waiting_tokens_, &oldest_wait_, &running_;
    prometheus::Counter& admitted_;
};

}  // namespace patchbay::engine
