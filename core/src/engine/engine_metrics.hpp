// From step reports and outputs to metrics: merged once a step, at the cost of what was scheduled. Used by whoever
// drives an engine (generate, run, serve).
#pragma once
#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "metrics/catalogue.hpp"

namespace patchbay::engine {

class EngineMetrics {
  public:
    EngineMetrics(metrics::Metrics&, const EngineFacts&, const std::string& version);
    ~EngineMetrics();

    void on_request(RequestId, uint64_t arrival_ns, uint32_t prompt_tokens); // before its first step
    void on_output(const RequestOutput&);
    void on_step(const StepReport&);

  private:
    struct Series;
    std::unique_ptr<Series> series_;
};

}  // namespace patchbay::engine
