// What an experiment may claim: results for each variant, what must be known first, and the one sentence at the end.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiment/capacity.hpp"
#include "experiment/comparison.hpp"
#include "experiment/quality.hpp"
#include "experiment/run_summary.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

struct Contestant { // the part of a variant that a conclusion depends on
    std::string name;
    std::vector<std::string> undeclared; // paths that differ from the baseline without being declared
    bool same_requests = true;           // as the baseline's, so that outputs can be compared
    bool same_configuration = false;     // as the baseline's, in all that is in effect; false of the baseline itself
};

struct ClassResults { // of the requests of one class; exploratory, whatever the metric
    std::string by, name;               // "tenant", "1"
    std::vector<uint64_t> requests;     // by variant, over its runs that count
    std::vector<VariantResult> results; // by variant
};

struct Conclusion {
    std::vector<VariantResult> results; // one a variant
    std::vector<ClassResults> classes;
    std::vector<QualityResult> quality; // one a variant, or none
    MetricList list = metric_infos();   // the metrics
    std::vector<size_t> primary;        // those with verdicts; the first is the one that a winner is best in
    bool claims = false;                // the sentence says that variants differ
    std::string winner;                 // empty: none may be named
    std::string sentence;               // "sjf has the best goodput share: …", or why there is no winner
    std::string counted;                // "counted: requests that arrive …"
    std::vector<std::string> notices;   // invalid runs, differences that were not declared, interruption
};

// What the runs measured that count; of one variant and repeat there is at most one of them.
// Metrics: the given ones, and those of plugins that are not among them.
Measured measured(const std::vector<RunSummary>&, size_t variants, const MetricList& = metric_infos());
// Runs of searches for the capacity are not looked at; `capacities`: what they found.
Conclusion conclude(const std::vector<RunSummary>&, const std::vector<Contestant>&, const Question&,
                    const std::vector<ByClass>& by = {}, const Capacities& capacities = {});

struct Claim {
    std::string winner, sentence;
    std::optional<size_t> leader; // the variant that the sentence puts before the baseline
    bool claims = false;          // says that variants differ
};
// The sentence, from numbers alone. It is false in no more than 5 of 100 experiments, choosing among variants included.
Claim claim_of(const Measured&, const std::vector<VariantResult>&, const std::vector<std::string>& names,
               const Question&);

// "12.3", "1,234", "0.0042": three significant digits at least.
std::string shown(double value);

}  // namespace patchbay::experiment
