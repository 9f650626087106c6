// The engine's metrics under vLLM's names, types and labels, so that dashboards and clients made for vLLM work. Beside
// Patchbay's own; fed by the observers of an EngineThread, on its thread. Used by Server where it is asked for.
#pragma once
#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "metrics/catalogue.hpp"

namespace patchbay::serve {

class VllmMetrics {
  public:
    VllmMetrics(metrics::Metrics&, const std::string& model_name, const engine::EngineFacts&);
    ~VllmMetrics();

    void on_request(engine::RequestId, const engine::Request&);
    void on_output(const engine::RequestOutput&);
    void on_step(const engine::StepReport&);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace patchbay::serve
