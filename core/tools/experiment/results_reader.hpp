// What a finished experiment left in its results.sqlite, for showing it again. Read-only.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "experiment/conclusion.hpp"

namespace patchbay::experiment {

struct StoredExperiment {
    std::string name, question, started, end, seed, version, cpu, workload_yaml;
    std::string inputs; // SHA-256 of each file that was read
    uint64_t repeats = 0, runs = 0, valid_runs = 0;
    std::vector<std::string> variants;
    size_t baseline = 0;
    Conclusion conclusion; // empty results where the experiment did not reach its end
    bool concluded() const { return !conclusion.results.empty(); }
};

// Fails where there is no such file, it is no results database, or one of another version.
Result<StoredExperiment> read_experiment(const std::filesystem::path& database);

// A table of the database as CSV with a header line; blobs in hexadecimal. Fails on an unknown table, naming all.
Result<> export_csv(const std::filesystem::path& database, const std::string& table, std::ostream& out);

}  // namespace patchbay::experiment
