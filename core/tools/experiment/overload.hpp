// Whether requests came faster than a variant served them: then latencies grow with the run, and say how long it was.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiment/conclusion.hpp"
#include "experiment/run_summary.hpp"

namespace patchbay::experiment {

// Of the requests that arrive in the span. None where fewer than 10 of them are complete, or all arrive at once.
std::optional<Load> load_of(const RunRecord&, const TimeSpan&);

// A note for each variant that is overloaded: its growth is 0.05 or more on average over its valid runs, with an
// interval above 0.
std::vector<std::string> overload_notices(const std::vector<RunSummary>&, const std::vector<Contestant>&);

}  // namespace patchbay::experiment
