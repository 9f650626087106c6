// What a pass of the model did, and how long: plain data, read once a step for its report.
#pragma once
#include <cstdint>

#include "runner/call_times.hpp"
#include "runner/graph_use.hpp"

namespace patchbay::execution {

struct PassStats { // of the latest pass
    runner::CallTimes times;
    runner::GraphUse graph;
    uint32_t graphs = 0;                // captured so far
    uint64_t graph_bytes = 0;
    uint64_t broadcast_bytes = 0, broadcast_ns = 0; // to each of the other ranks
};

}  // namespace patchbay::execution
