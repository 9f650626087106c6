// Arrival times of requests, since the start of a run.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "experiment/draws.hpp"
#include "experiment/spec.hpp"
#include "experiment/traces/trace.hpp"

namespace patchbay::experiment {

// `count` times in ns, never going back but in a closed loop. The trace must have `count` rows where the process is
// TraceArrivals.
std::vector<uint64_t> arrival_times(const Arrivals&, uint32_t count, const Draws&, std::span<const TraceRow> trace);

}  // namespace patchbay::experiment
