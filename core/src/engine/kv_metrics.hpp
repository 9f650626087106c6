// Metrics of preemptions, of KV in host memory, and of how pages are used. Part of EngineMetrics.
#pragma once
#include <array>

#include "engine/step_report.hpp"
#include "metrics/catalogue.hpp"

namespace patchbay::engine {

class KvMetrics {
  public:
    explicit KvMetrics(metrics::Metrics&);
    ~KvMetrics(); // what is about the present ends with the engine
    void on_step(const StepReport&);

  private:
    prometheus::Counter &recomputed_, &swapped_, &preempted_tokens_, &pages_out_, &pages_in_;
    std::array<prometheus::Counter*, kSwapFallbacks> fallbacks_{};
    prometheus::Gauge &used_slots_, &free_slots_, &page_copy_, &token_, &fragmentation_, &watermark_;
    prometheus::Histogram& residency_;
};

}  // namespace patchbay::engine
