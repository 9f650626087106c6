// Where in a trace each repeat takes its requests from.
#pragma once
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

struct WindowPlan {
    uint32_t rows = 0;            // of each window
    std::vector<uint32_t> starts; // one a repeat
    uint32_t independent = 0;     // windows of which no two share a row
};

// At most so many of these windows, each of `rows` rows, have no row in common.
uint32_t disjoint_windows(std::vector<uint32_t> starts, uint32_t rows);

// asked: rows of a window; 0: as many as there are for each. rows: of the trace.
Result<WindowPlan> plan_windows(const Windows&, uint32_t rows, uint32_t asked, uint32_t repeats, uint64_t seed);

}  // namespace patchbay::experiment
