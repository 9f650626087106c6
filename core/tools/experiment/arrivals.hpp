// Arrival times of requests, since the start of a run.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "experiment/draws.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

// `count` times in ns, of requests that follow none, never going back but in a closed loop. trace: where the process is
// TraceArrivals, the times that the trace has of them.
std::vector<uint64_t> arrival_times(const Arrivals&, uint32_t count, const Draws&, std::span<const uint64_t> trace);

}  // namespace patchbay::experiment
