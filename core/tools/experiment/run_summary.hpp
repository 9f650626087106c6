// What is kept of a run once its rows are stored: its numbers, and digests that outputs and times are compared by. Some
// bytes a request, so that an experiment of many large runs fits in memory.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiment/record.hpp"
#include "experiment/run_metrics.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

struct Load { // of a run
    double offered = 0, served = 0; // requests per second: by the arrivals; completed ones by the length of the span
    double growth = 0;              // least-squares slope of the time to first token over the arrival, in s per s
};

using ClassName = std::pair<int64_t, std::string>; // in the order in which classes are shown
struct ClassNumbers {
    uint64_t requests = 0;
    std::vector<double> metrics; // of metric_infos()
};

struct Counting { // of an experiment: what its numbers are of
    Slo slo{};
    std::vector<ByClass> by{};
    std::optional<CountingWindow> window{};
    std::optional<CapacitySearch> capacity{};
};

inline Counting counting_of(const ExperimentSpec& spec) {
    return {spec.slo, spec.by, spec.window, spec.capacity};
}

struct RunSummary {
    size_t variant = 0;
    uint32_t repeat = 0, position = 0, attempt = 0;
    RunEnd end = RunEnd::kComplete;
    bool superseded = false;             // the run was repeated, and the other one counts
    std::vector<std::string> faults;
    std::optional<double> rate;          // of a search for the capacity; none: as the file says
    std::optional<double> objective;     // of such a search: the share of requests that kept its objective
    double others_share = 0;             // of the machine's CPU time, that others took; 0 of runs shorter than 1 s
    std::vector<double> metrics;         // of metric_infos()
    std::vector<NamedNumber> of_plugins; // their own metrics
    std::vector<std::map<ClassName, ClassNumbers>> classes; // one an entry of `by`
    std::optional<Load> load;
    uint64_t timing = 0;                 // of timing_of()
    std::vector<uint64_t> outputs;       // one a request, equal where outputs are; 0: it did not complete
    std::vector<SwapOutcome> swaps;

    bool valid() const { return end == RunEnd::kComplete && faults.empty(); }
    bool counts() const { return valid() && !superseded; }
};

RunSummary summary_of(const RunRecord&, const Counting&);
// What RunSummary::others_share is of a run of this length.
double judged_share(const std::optional<CpuUse>&, uint64_t duration_ns);
// The class of a request: {7, "7"}, {1024, "≤ 1,024"}.
ClassName class_of(const RequestRecord&, const ByClass&);

}  // namespace patchbay::experiment
