// From the record of a run to its metrics, a number each. docs/experiments.md defines every metric.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "experiment/metric_list.hpp"
#include "experiment/record.hpp"
#include "experiment/spec.hpp"
#include "experiment/workload.hpp"

namespace patchbay::experiment {

inline constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN(); // nothing to compute it from

// Linear interpolation between order statistics: rank q(n − 1). kNoValue for no data. Reorders `values`.
double quantile(std::vector<double>& values, double q);

// Where the file names none: goodput share if there is an objective, else throughput; TTFT, TPOT and E2E.
std::vector<size_t> default_primary(const Slo&);

// One request's latencies in ms; kNoValue where there is none (TPOT and gaps of a single token). Of several outputs all
// but `e2e`, which is of the whole request, are of the first one.
struct Latencies {
    double ttft, tpot, e2e;
    std::vector<double> gaps{};      // between successive tokens: ITL
    double normalised = kNoValue;    // from the arrival to the last token, by the tokens
};
Latencies latencies_of(const RequestRecord&);
bool meets(const Slo&, const RequestRecord&);

// The part of a run in which requests count: the whole run where there is no window.
TimeSpan counted_span(const RunRecord&, const std::optional<CountingWindow>&);
// The same before the run, by the planned arrivals: of its steps. The whole run where requests follow one another.
TimeSpan planned_span(const Requests&, const std::optional<CountingWindow>&);

// In the order of metric_infos(), of the requests that arrive in the span, and of those only that `counts` lets through
// (empty: all); rates are of what happens in the span. Without what no single run shows: the capacity.
std::vector<double> metrics_of(const RunRecord&, const Slo&, const TimeSpan&,
                               const std::function<bool(const RequestRecord&)>& counts = {});

// Equal for runs whose requests had the same lengths and came, went and got their tokens at the same times.
uint64_t timing_of(const RunRecord&);

}  // namespace patchbay::experiment
