// CUDA graphs of steps: recorded, launched, freed. For the CUDA device.
#pragma once
#include <cuda_runtime_api.h>

#include "gpu.hpp"
#include "patchbay/abi/device.h"
#include "steps.hpp"

struct pb_graph {
    cudaGraphExec_t exec = nullptr;
    uint64_t bytes = 0;
};

namespace patchbay {

class Graphs {
  public:
    Graphs(Gpu& gpu, Steps& steps) : gpu_(gpu), steps_(steps) {}

    // As sdk/device.hpp wants them. Throw Error, unless they are noexcept.
    void graph_begin();
    pb_graph* graph_end(); // for graph_free()
    void graph_launch(pb_graph*);
    void graph_free(pb_graph*) noexcept;
    uint64_t graph_bytes(const pb_graph* graph) const noexcept { return graph->bytes; }

  private:
    Gpu& gpu_;
    Steps& steps_;
};

}  // namespace patchbay
