// Metrics of steps that are no single numbers: how long they took, what they had, how long pages were held, which graph
// was replayed, and whether the step before was still in flight. Part of EngineMetrics.
#pragma once
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "metrics/catalogue.hpp"

namespace patchbay::engine {

struct GraphReport;
struct StepReport;

class StepMetrics {
  public:
    explicit StepMetrics(metrics::Metrics&);
    void on_step(const StepReport&);

  private:
    prometheus::Counter& by_sync_reason(std::string_view);
    prometheus::Counter& dispatches(const GraphReport&);

    metrics::Metrics& all_;
    prometheus::Counter& steps_;
    prometheus::Histogram &seconds_, &tokens_, &sequences_, &residency_;
    std::map<std::string_view, prometheus::Counter*> by_sync_reason_; // reasons are static strings
    std::map<std::pair<std::string_view, uint32_t>, prometheus::Counter*> dispatches_; // by reason and size
};

}  // namespace patchbay::engine
