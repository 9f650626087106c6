// Whether other users could have written a file, or could put another in its place: what is loaded as code must come
// from folders that they cannot write to. Used by the registry for folders of plugins.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>

struct group; // of <grp.h>
struct passwd; // of <pwd.h>

namespace patchbay::host {

// Whether it is the group of one user alone, as Debian makes one for each user, whose files are group-writable by
// default (umask 002). Root's is not meant: files of services belong to it.
bool is_private_group(const ::passwd& user, const ::group&);

class TrustedFiles {
  public:
    // Trusted owners: root, the user of this process, and the owner of the running program, which could do anything
    // here anyway (a checkout that is mounted into a container belongs to the user outside).
    explicit TrustedFiles(std::filesystem::path program = running_program());
    static std::filesystem::path running_program();

    // Why a file or folder is not trusted, and what mends it; empty: it is. Looks at the file that a link leads to, and
    // at the folders above it up to the root, each once. Sticky folders (/tmp) may be above, since there only owners
    // take files away. Folders that hold the running program are not looked at: what others could put there they could
    // put in the program's place.
    std::string fault(const std::filesystem::path&);

  private:
    bool is_trusted(uid_t owner) const;
    bool holds_program(const std::filesystem::path& folder) const;
    std::string fault_of(const std::filesystem::path&, bool is_parent);
    uid_t program_owner_ = 0;
    std::filesystem::path program_;
    std::map<std::filesystem::path, std::string> folders_; // above those that were looked at: their faults
};

}  // namespace patchbay::host
