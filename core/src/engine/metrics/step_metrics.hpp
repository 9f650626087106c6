// Metrics of steps: how many, how long, what was computed, and whether the step before was still in flight. Part of
// EngineMetrics.
#pragma once
#include <array>
#include <map>
#include <string_view>

#include "engine/step_report.hpp"
#include "metrics/catalogue.hpp"

namespace patchbay::engine {

class StepMetrics {
  public:
    explicit StepMetrics(metrics::Metrics&);
    void on_step(const StepReport&);

  private:
    prometheus::Counter& by_sync_reason(std::string_view);

    metrics::Metrics& all_;
    prometheus::Counter &steps_, &prefill_, &decode_, &trimmed_, &forked_, &broadcast_bytes_, &broadcast_seconds_;
    prometheus::Histogram &seconds_, &tokens_, &sequences_;
    std::array<prometheus::Counter*, kPhaseCount> phases_{};
    std::map<std::string_view, prometheus::Counter*> by_sync_reason_; // static strings
};

}  // namespace patchbay::engine
