// results.sqlite: everything an experiment found out, for the report and for anybody's queries. The schema is
// documented in docs/experiments.md. Rows of a run are written while it goes on, by the process that does not run it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "experiment/conclusion.hpp"
#include "experiment/machine.hpp"
#include "experiment/drive.hpp"
#include "experiment/input_files.hpp"
#include "experiment/matrix.hpp"
#include "experiment/record.hpp"
#include "experiment/results_lock.hpp"

namespace patchbay::experiment {

inline constexpr uint32_t kResultsVersion = 6;     // user_version of the databases
inline constexpr uint32_t kReadableResults = 5;    // the earliest that can be shown
inline constexpr const char* kResultsFile = "results.sqlite";

struct BuiltFrom { // the source tree, when the program was built
    std::string commit;         // empty: not known
    bool has_changes = false;   // of files that git follows
};

struct ExperimentRow {
    std::string name, question, spec_file, spec_yaml, command, started, version, baseline, workload_yaml;
    Slo slo;
    uint64_t seed = 0;
    uint32_t repeats = 0, warmup_requests = 0;
    MachineFacts machine;
    BuiltFrom built_from;
    std::vector<InputFile> inputs;        // that the workloads were read from
    std::optional<double> capacity_share; // of requests that are to keep the objective of `capacity`
};

struct VariantRow {
    std::string name, patch_yaml, effective_yaml, facts_json, plugins_json;
    std::vector<ConfigDifference> differences; // from the baseline
    std::vector<Leaf> factors{};               // what it declares
};

class ResultsStore {
  public:
    // kResultsFile in the lock's folder, which stays locked as long as this lives.
    // max_bytes: of the database, 0: no limit; beyond it writes fail as on a full disk.
    static Result<ResultsStore> create(ResultsLock, uint64_t max_bytes = 0);
    // One that is there, of an experiment that goes on: without what was concluded and runs that were interrupted.
    static Result<ResultsStore> resume(ResultsLock);
    ~ResultsStore();
    ResultsStore(ResultsStore&&) noexcept;

    // Each is one transaction: it is there as a whole or not at all.
    Result<> add_experiment(const ExperimentRow&, const std::vector<VariantRow>&);
    // A run: its id first; its rows while it goes on; the rest when it has ended. counted: none: all of it.
    Result<uint64_t> begin_run(const RunRecord&, uint64_t seed);
    Result<> add_rows(uint64_t run, const Rows&);
    Result<> end_run(uint64_t run, const RunRecord&, const RunSummary&, const std::optional<TimeSpan>& counted);
    // A run of a search for the capacity, of which no rows are kept.
    Result<> add_capacity_run(const RunRecord&, const RunSummary&, bool kept);
    Result<> supersede(const RunSummary&); // another attempt counts; its faults say why
    Result<> set_repeats(uint32_t); // once it is decided how many there are
    Result<> finish(const Conclusion&, const std::string& end); // end: "complete" or "interrupted"

  private:
    struct Database;
    explicit ResultsStore(std::unique_ptr<Database>);
    std::unique_ptr<Database> db_;
};

}  // namespace patchbay::experiment
