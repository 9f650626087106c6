// What an experiment may claim: results for each variant, what must be known first, and the one sentence at the end.
#pragma once
#include <string>
#include <vector>

#include "experiment/record.hpp"
#include "experiment/spec.hpp"
#include "experiment/statistics.hpp"

namespace patchbay::experiment {

struct Contestant { // the part of a variant that a conclusion depends on
    std::string name;
    std::vector<std::string> undeclared; // paths that differ from the baseline without being declared
};

struct VariantResult {
    std::vector<double> metrics; // of metric_infos(), over the runs that count
    Comparison comparison;       // empty metrics: the baseline
};

struct Conclusion {
    std::vector<VariantResult> results; // one a variant
    std::string winner;                 // of the headline metric; empty: none may be named
    std::string sentence;               // "sjf has the best E2E mean: …", or why there is no winner
    std::vector<std::string> notices;   // invalid runs, differences that were not declared, interruption
};

// Goodput where there is an objective, else mean E2E.
size_t headline_metric(const Slo&);
Conclusion conclude(const std::vector<RunRecord>&, const std::vector<Contestant>&, size_t baseline, const Slo&,
                    uint64_t seed);

// "12.3", "1,234", "0.0042": three significant digits at least.
std::string shown(double value);

}  // namespace patchbay::experiment
