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

    // Throw Error.
    void begin() { gpu_.begin_capture(); }
    pb_graph* end(); // for release()
    void launch(pb_graph*);
    void release(pb_graph*) noexcept;

  private:
    Gpu& gpu_;
    Steps& steps_;
};

}  // namespace patchbay
