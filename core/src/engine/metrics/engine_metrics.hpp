// From step reports and outputs to metrics: merged once a step, at the cost of what was scheduled. Used by what
// drives an engine (generate, run).
#pragma once
#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "engine/loop/step_observer.hpp"
#include "host/component.hpp"
#include "metrics/catalogue.hpp"

namespace patchbay::engine {

struct EngineFacts;

class EngineMetrics final : public StepObserver {
  public:
    EngineMetrics(metrics::Metrics&, const EngineFacts&, const std::string& version);
    // What is about the present ends with the engine; counters and histograms go on with the next one.
    ~EngineMetrics() override;
    void replaced_by(const EngineFacts& next); // what that one's plugins have set does not end, if they were here, too

    void on_request(RequestId, uint64_t arrival_ns, uint32_t prompt_tokens, uint32_t n = 1); // before its first step
    void on_output(const RequestOutput&);
    void on_end(const StepReport&) override;

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

// What plugins count themselves, beside the engine's. Must outlive the engine.
class PluginMetrics final : public host::MetricSink {
  public:
    explicit PluginMetrics(metrics::Metrics& all) : all_(all) {}
    void add(const std::string& kind, const std::string& component, const std::string& name, double amount) override {
        all_.plugin_add(kind, component, name, amount);
    }
    void set(const std::string& kind, const std::string& component, const std::string& name, double value) override {
        all_.plugin_set(kind, component, name, value);
    }

  private:
    metrics::Metrics& all_;
};

}  // namespace patchbay::engine
