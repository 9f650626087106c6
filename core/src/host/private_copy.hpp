// A file's bytes, read once, hashed, and kept in a folder of our own under a name made of the hash. Libraries are
// mapped from there only, so what was hashed is what runs.
#pragma once
#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace patchbay::host {

struct PrivateCopy {
    std::filesystem::path path;
    std::string sha256;
};

// In $PATCHBAY_CACHE, else $XDG_CACHE_HOME/patchbay, else ~/.cache/patchbay, else the temporary folder; mode 0700. What
// has not been asked for in 30 days is removed when a copy is made.
Result<PrivateCopy> private_copy(const std::filesystem::path& file);
Result<std::string> file_sha256(const std::filesystem::path& file);
// Why no library can be mapped from a folder of copies, and what to set; empty: its mount permits it. The second is of
// these flags of statvfs(), with the variable that chooses the folder.
std::string mount_fault(const std::filesystem::path& folder);
std::string fault_of_mount(const std::filesystem::path& folder, unsigned long flags, const char* variable);

}  // namespace patchbay::host
