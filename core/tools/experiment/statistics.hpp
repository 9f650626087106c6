// From records to numbers: what each variant did, and how it differs from the baseline. docs/experiments.md defines
// every metric.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
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
};
const std::vector<MetricInfo>& metric_infos(); // the order in which they are shown

// One request's latencies in ms; kNoValue where there is none (TPOT and gaps of a single token).
struct Latencies {
    double ttft, tpot, e2e;
    std::vector<double> gaps; // between successive tokens: ITL
};
Latencies latencies_of(const RequestRecord&);
bool meets(const Slo&, const RequestRecord&);

// The value of each metric of metric_infos() for one variant: over all requests of its runs together for latencies and
// goodput share, the mean over runs for rates, KV and preemptions.
std::vector<double> summarise(std::span<const RunRecord* const> runs, const Slo&);

enum class Verdict { kBaseline, kBetter, kWorse, kNoDifference, kDifferent, kTooFewRepeats, kNone };
std::string word_of(Verdict);

struct Difference {
    double value = kNoValue;                    // variant − baseline
    double low = kNoValue, high = kNoValue;     // 95 % bootstrap interval
    Verdict verdict = Verdict::kNone;
};

struct Comparison {
    std::vector<Difference> metrics;   // one a metric
    uint32_t pairs = 0, repeats = 0;   // requests completed in both; repeats valid in both
    double same_output = kNoValue;     // share of the pairs whose output tokens are equal
    uint32_t resamples = 0;
};

inline constexpr uint32_t kRepeatsForVerdict = 5;

// Runs paired by position: variant[i] and baseline[i] are the same repeat. Request k of both is the same request.
Comparison compare(std::span<const RunRecord* const> variant, std::span<const RunRecord* const> baseline, const Slo&,
                   uint64_t seed);

}  // namespace patchbay::experiment
