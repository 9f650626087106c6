// The record of an experiment that was interrupted, read again so that it can be continued: what was to be run, and the
// runs that are finished.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "experiment/record.hpp"
#include "experiment/results_store.hpp"

namespace patchbay::experiment {

struct RecordedSpec {
    std::string name, yaml;
};
// Fails if the experiment is complete.
Result<RecordedSpec> recorded_spec(const std::filesystem::path& database);

// Without those that were interrupted. Fails if the program, the files that workloads are read from or the variants are
// not, in all that was recorded of them, those of then.
Result<std::vector<RunSummary>> recorded_runs(const std::filesystem::path& database, const ExperimentRow&,
                                              const std::vector<VariantRow>&, const Counting&);

// Where the machine that the experiment began on differs from this one, or did when it was last continued; empty:
// nowhere.
Result<std::string> other_machine_notice(const std::filesystem::path& database, const MachineFacts& now);

}  // namespace patchbay::experiment
