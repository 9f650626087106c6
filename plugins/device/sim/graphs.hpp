// Graphs: ops that are recorded once and charged at each replay.
#pragma once
#include "memory.hpp"
#include "step_time.hpp"

struct pb_graph {
    patchbay::RecordedOps ops;
    uint64_t bytes = 0; // of the memory
};

namespace patchbay {

class Graphs {
  public:
    Graphs(StepTime& time, CountedMemory& memory) : time_(time), memory_(memory) {}

    // As sdk/device.hpp wants them.
    void graph_begin();
    pb_graph* graph_end();
    void graph_launch(pb_graph* graph) { time_.replay(graph->ops); }
    void graph_free(pb_graph*) noexcept;
    uint64_t graph_bytes(const pb_graph* graph) const noexcept { return graph->bytes; }

  private:
    StepTime& time_;
    CountedMemory& memory_;
};

}  // namespace patchbay
