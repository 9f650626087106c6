// An experiment from beginning to end: every run in its order on a fresh engine, results stored after each.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "engine/trace/step_file_paths.hpp"
#include "experiment/conclusion.hpp"
#include "experiment/live_run.hpp"
#include "experiment/prepared_variants.hpp"
#include "experiment/results_store.hpp"
#include "experiment/spec.hpp"
#include "host/probe.hpp"
#include "host/registry.hpp"
#include "metrics/catalogue.hpp"

namespace patchbay::experiment {

struct ExperimentOptions {
    std::filesystem::path spec_file, folder; // folder: of results, made if it is not there
    std::string command, version;
    BuiltFrom built_from;
    std::function<bool()> interrupted;                  // empty: never
    std::function<void(const RunProgress&)> progress;   // after each step; may be empty
    metrics::Metrics* metrics = nullptr;                // kept up to date if given
    host::ProbeOptions probe;                           // of what swaps bring in
    std::filesystem::path program;                      // a patchbay: each run is a process of it; empty: this process
    std::vector<std::string> plugin_dirs;               // for these processes
    uint32_t jobs = 1;                                  // processes at a time; more only of simulations
    engine::StepFilePaths files;                        // of the first repeat of each variant
    MakeRunControl make_control;                        // of runs in this process; empty: none
    ControlChoice control;                              // of runs in processes of their own, too
    bool resume = false;                                // the folder's experiment, from where it was interrupted
};

struct Outcome {
    std::filesystem::path database;
    Conclusion conclusion;
    std::vector<std::string> swaps;  // a line for each that the file asks for
    bool complete = true;            // false: interrupted
    std::vector<std::string> without_valid_run; // variants whose every run failed or broke a rule
    engine::StepFilePaths step_files;           // those that were written
    Result<> step_files_joined;                 // failed: one that was to be written was not
};

// Tries the variants out, and says what would be run: a few lines for people.
Result<std::string> dry_run(const ExperimentSpec&, PreparedVariants&, const host::Registry&, Clock&,
                            const ExperimentOptions&);
Result<Outcome> run_experiment(const ExperimentSpec&, PreparedVariants&, const host::Registry&, Clock&,
                               const ExperimentOptions&);

}  // namespace patchbay::experiment
