// All runs of an experiment in their order, each in a process of its own or all in this one; stored as they end.
#pragma once
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/trace/step_file_paths.hpp"
#include "experiment/live_run.hpp"
#include "experiment/prepared_variants.hpp"
#include "experiment/results_store.hpp"
#include "experiment/run_process.hpp"
#include "experiment/run_summary.hpp"
#include "experiment/workloads.hpp"

namespace patchbay::experiment {

struct Processes { // in which runs are
    std::filesystem::path program;        // a patchbay; empty: this process
    std::vector<std::string> plugin_dirs; // for its registry
    std::string spec_yaml;                // the experiment
    uint32_t jobs = 1;                    // runs at a time
};

struct TracedRuns { // the first repeat of each variant
    engine::StepFilePaths files; // that are made of their parts

    engine::StepFilePaths parts_of(const RunSlot&) const; // none: the run is not traced
    Result<> check() const; // refused: files that cannot be written; those that are there keep what they have
    // Of the parts that are there, which are removed; a file without parts stays as it is. `written` gets the files
    // that were made, also where another of them could not be, whose parts are kept.
    Result<> join(size_t variants, engine::StepFilePaths& written) const;
};

class Campaign {
  public:
    Campaign(const RunSurroundings& around, const Processes& processes, const Shown& shown, const TracedRuns& traced)
        : around_(around), processes_(processes), shown_(shown), traced_(traced) {}

    // What engines of the variants say: see try_out(). [before run_all()]
    Result<LoadedParts> try_variant(const PreparedVariant&, size_t variant);
    // Adds to `runs` those of the order that are not in it, which have the positions from `first` on. Ends early if it
    // is interrupted. A run that fails is a record that says why; one that others disturbed takes place again.
    Result<> run_all(const PreparedVariants&, const Workloads&, const std::vector<RunSlot>& order, size_t first,
                     ResultsStore&, std::vector<RunSummary>& runs);
    // What a variant makes of the text of `quality`.
    Result<QualityScores> score(const PreparedVariant&, size_t variant);
    bool stopped() const { return stopped_; } // before all was done

  private:
    struct Waiting {
        RunSlot slot;
        size_t position;
    };
    struct Work { // of run_all()
        const PreparedVariants& prepared;
        const Workloads& workloads;
        ResultsStore& store;
        std::vector<RunSummary>& runs;
        std::deque<Waiting> waiting;
        size_t first, count; // positions
    };
    class StoredRun;
    struct Active { // a run that goes on
        size_t position;
        RunSlot slot;
        std::string started;
        std::unique_ptr<StoredRun> stored;
        std::unique_ptr<LiveRun> live;
        std::unique_ptr<RunProcess> process;
    };
    class Patience;

    bool interrupted() const { return around_.interrupted && around_.interrupted(); }
    bool here() const { return processes_.program.empty(); }
    Result<std::unique_ptr<RunProcess>> run_alone(const Job&, const PreparedVariant&, size_t variant);
    Job job_of(const PreparedVariant&, size_t variant) const;
    RunRecord run_here(const PreparedVariants&, const Workloads&, const RunSlot&, LiveRun&);
    Result<Active> prepared_run(Work&, const Waiting&, size_t before);
    Result<> start(Work&, Active&);
    RunRecord record_of(const PreparedVariants&, const Active&) const;
    Result<> keep(Work&, const Active&, RunRecord);
    bool is_to_be_repeated(const RunSummary&) const;
    Result<> choose_attempt(Work&, size_t position);
    Result<> go_on_from(Work&, const RunSlot&, size_t position);
    Result<> run_in_processes(Work&);
    Result<> run_one_by_one(Work&);

    const RunSurroundings& around_;
    const Processes& processes_;
    const Shown& shown_;
    const TracedRuns& traced_;
    bool stopped_ = false;
    bool drained_ = false; // a run has ended early, as it was asked to
};

}  // namespace patchbay::experiment
