// Metrics of graphs: how often a pass replays one, of which size, why not, and what they take. Part of EngineMetrics.
#pragma once
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "metrics/catalogue.hpp"

namespace patchbay::engine {

struct GraphFacts;
struct GraphReport;

class GraphMetrics {
  public:
    GraphMetrics(metrics::Metrics&, const GraphFacts& at_load);
    ~GraphMetrics(); // what is about the present ends with the engine
    void on_step(const GraphReport&, uint32_t scheduled_tokens); // of a step that computed some

  private:
    prometheus::Counter& dispatches(const GraphReport&);

    metrics::Metrics& all_;
    prometheus::Counter &useful_, &padded_, &capture_;
    prometheus::Gauge &graphs_, &bytes_;
    std::map<std::pair<std::string_view, uint32_t>, prometheus::Counter*> dispatches_; // by reason, a static string,
                                                                                       // and size
};

}  // namespace patchbay::engine
