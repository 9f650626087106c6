// Who writes a folder of results: one process at a time, the others are refused. The lock is of the folder, never of
// the database in it, which SQLite locks itself; the system takes it back however the process ends.
#pragma once
#include <filesystem>

#include "base/child_process.hpp"
#include "base/result.hpp"

namespace patchbay::experiment {

class ResultsLock {
  public:
    // Of a folder that is there; children do not inherit it. Fails with unavailable while another holds one, this
    // process too. Where the file system has no locks it keeps no other out.
    static Result<ResultsLock> take(const std::filesystem::path& folder);
    const std::filesystem::path& folder() const { return folder_; }

  private:
    ResultsLock(std::filesystem::path folder, Descriptor fd) : folder_(std::move(folder)), fd_(std::move(fd)) {}
    std::filesystem::path folder_;
    Descriptor fd_;
};

enum class ResultsWriter { kNone, kThere, kUnknown }; // kUnknown: not opened, or a file system without locks
ResultsWriter writer_of(const std::filesystem::path& folder);

}  // namespace patchbay::experiment
