// Whether other users could have written a file, or could put another in its place: what is loaded as code must come
// from folders that they cannot write to. Used by the registry for folders of plugins.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>

namespace patchbay::host {

class TrustedFiles {
  public:
    // Trusted owners: root, the user of this process, and the owner of the running program, which could do anything
    // here anyway (a checkout that is mounted into a container belongs to the user outside).
    TrustedFiles();

    // Why a file or folder is not trusted, and what mends it; empty: it is. Looks at the file that a link leads to, and
    // at the folders above it up to the root, each once. Sticky folders (/tmp) may be above, since there only owners
    // take files away.
    std::string fault(const std::filesystem::path&);

  private:
    bool is_trusted(uid_t owner) const;
    std::string fault_of(const std::filesystem::path&, bool is_parent);
    uid_t program_owner_ = 0;
    std::map<std::filesystem::path, std::string> folders_; // above those that were looked at: their faults
};

}  // namespace patchbay::host
