// One trace of several, each of another engine, so that they lie one below the other on one time axis. Used by
// experiments.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace patchbay::engine {

// Parts are files that TraceFile wrote, each with another number; a last line that was not written whole is left out.
Result<> join_traces(const std::vector<std::filesystem::path>& parts, const std::string& path);

}  // namespace patchbay::engine
