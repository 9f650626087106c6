// Metrics of preemptions and of KV in host memory. Part of EngineMetrics.
#pragma once
#include <array>

#include "engine/step_report.hpp"
#include "metrics/catalogue.hpp"

namespace patchbay::engine {

struct KvFacts;

class PreemptionMetrics {
  public:
    PreemptionMetrics(metrics::Metrics&, const KvFacts& at_load);
    ~PreemptionMetrics(); // what is about the present ends with the engine
    void on_step(const PreemptionReport&);

  private:
    prometheus::Counter &recomputed_, &swapped_, &tokens_, &pages_out_, &pages_in_;
    std::array<prometheus::Counter*, kSwapFallbacks> fallbacks_{};
    prometheus::Gauge &used_pages_, &free_pages_, &page_copy_, &token_;
};

}  // namespace patchbay::engine
