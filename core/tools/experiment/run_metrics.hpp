// From the record of a run to its metrics, a number each. docs/experiments.md defines every metric.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "experiment/record.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

inline constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN(); // nothing to compute it from

// Linear interpolation between order statistics: rank q(n − 1). kNoValue for no data. Reorders `values`.
double quantile(std::vector<double>& values, double q);

enum class Better { kHigher, kLower, kNeither };

struct MetricInfo {
    std::string name, unit; // "ttft_p99", "ms"
    std::string label;      // "TTFT p99"
    Better better;
    bool is_amount;         // times and rates, which are compared by their ratios; else by differences
};
const std::vector<MetricInfo>& metric_infos(); // the order in which they are shown
std::optional<size_t> metric_named(const std::string& name);
// Where the file names none: goodput share if there is an objective, else throughput; TTFT, TPOT and E2E.
std::vector<size_t> default_primary(const Slo&);

// One request's latencies in ms; kNoValue where there is none (TPOT and gaps of a single token).
struct Latencies {
    double ttft, tpot, e2e;
    std::vector<double> gaps; // between successive tokens: ITL
};
Latencies latencies_of(const RequestRecord&);
bool meets(const Slo&, const RequestRecord&);

struct TimeSpan { // in ns since the start of a run, ends included
    uint64_t from_ns = 0, until_ns = ~uint64_t{0};
    bool has(uint64_t at_ns) const { return from_ns <= at_ns && at_ns <= until_ns; }
};
// The part of a run in which requests count: the whole run where there is no window.
TimeSpan counted_span(const RunRecord&, const std::optional<CountingWindow>&);

// In the order of metric_infos(), of the requests that arrive in the span, and of those only that `counts` lets through
// (empty: all); rates are of what happens in the span. Without what no single run shows: the capacity.
std::vector<double> metrics_of(const RunRecord&, const Slo&, const TimeSpan&,
                               const std::function<bool(const RequestRecord&)>& counts = {});

// Equal for runs whose requests had the same lengths and came, went and got their tokens at the same times.
uint64_t timing_of(const RunRecord&);

}  // namespace patchbay::experiment
