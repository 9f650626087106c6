// What several engines wrote of their steps, each to a file of its own, as one file. Used by experiments.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace patchbay::engine {

// A last line that was not written whole is left out. Traces lie one below the other on one time axis: each was written
// by a TraceFile with another number. Lines of decisions or KV events stand one after the other.
Result<> join_traces(const std::vector<std::filesystem::path>& parts, const std::string& path);
Result<> join_lines(const std::vector<std::filesystem::path>& parts, const std::string& path);

}  // namespace patchbay::engine
