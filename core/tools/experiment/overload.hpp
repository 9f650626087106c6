// Whether requests came faster than a variant served them: then latencies grow with the run, and say how long it was.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiment/conclusion.hpp"
#include "experiment/record.hpp"

namespace patchbay::experiment {

struct Load { // of a run
    double offered = 0, served = 0; // requests per second: by the arrivals; completed ones by the run's length
    double growth = 0;              // least-squares slope of the time to first token over the arrival, in s per s
};
// None where fewer than 10 requests are complete, or all arrive at once.
std::optional<Load> load_of(const RunRecord&);

// A note for each variant that is overloaded: its growth is 0.05 or more on average over its valid runs, with an
// interval above 0.
std::vector<std::string> overload_notices(const std::vector<RunRecord>&, const std::vector<Contestant>&);

}  // namespace patchbay::experiment
