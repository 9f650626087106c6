// What a finished experiment left in its results.sqlite, for showing it again. Read-only.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "experiment/conclusion.hpp"

namespace patchbay::experiment {

struct StoredExperiment {
    std::string name, question, started, end, seed, version, cpu;
    std::string workload_yaml; // without where each value was written
    std::string inputs;  // SHA-256 of each file that was read
    std::string program; // commit and SHA-256 of the program
    uint64_t repeats = 0, runs = 0, valid_runs = 0; // of a run that took place twice: the attempt that counts
    uint64_t superseded_runs = 0;                   // the other attempts
    std::vector<std::string> variants;
    std::map<std::string, std::string> common; // settings that are no variant's: `repeats`, `slo.ttft_ms`
    // Of each variant: what was in effect, facts, plugins, and what it has of a workload of its own.
    std::vector<std::map<std::string, std::string>> settings;
    size_t baseline = 0;
    Conclusion conclusion; // empty results where the experiment did not reach its end
    bool concluded() const { return !conclusion.results.empty(); }
};

// Fails where there is no such file, it is no results database, or one of another version.
Result<StoredExperiment> read_experiment(const std::filesystem::path& database);

// A table of the database as CSV with a header line; blobs in hexadecimal. Fails on an unknown table, naming all.
Result<> export_csv(const std::filesystem::path& database, const std::string& table, std::ostream& out);

}  // namespace patchbay::experiment
