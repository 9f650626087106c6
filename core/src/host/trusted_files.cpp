#include "host/trusted_files.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/printable.hpp"

namespace patchbay::host {
namespace {

namespace fs = std::filesystem;

// The usual place of a lookup's texts; groups of thousands need more, and are not private.
using Buffer = std::vector<char>;
Buffer lookup_buffer() { return Buffer(1 << 16); }

bool is_private_group(gid_t group, uid_t owner) {
    Buffer of_user = lookup_buffer(), of_group = lookup_buffer();
    passwd user{}, *user_found = nullptr;
    ::group entry{}, *group_found = nullptr;
    if (getpwuid_r(owner, &user, of_user.data(), of_user.size(), &user_found) != 0 || !user_found) return false;
    if (getgrgid_r(group, &entry, of_group.data(), of_group.size(), &group_found) != 0 || !group_found) return false;
    return host::is_private_group(user, entry);
}

}  // namespace

bool is_private_group(const ::passwd& user, const ::group& entry) {
    if (user.pw_uid == 0 || user.pw_gid != entry.gr_gid || std::strcmp(user.pw_name, entry.gr_name) != 0) return false;
    for (char** member = entry.gr_mem; *member; ++member)
        if (std::strcmp(*member, user.pw_name) != 0) return false;
    return true;
}

TrustedFiles::TrustedFiles(fs::path program) : program_(std::move(program)) {
    struct stat info {};
    if (stat(program_.c_str(), &info) == 0) program_owner_ = info.st_uid;
}

fs::path TrustedFiles::running_program() {
    std::error_code ignored;
    return fs::read_symlink("/proc/self/exe", ignored);
}

bool TrustedFiles::is_trusted(uid_t owner) const {
    return owner == 0 || owner == geteuid() || owner == program_owner_;
}

std::string TrustedFiles::fault_of(const fs::path& path, bool is_parent) {
    const std::string name = printable(path.string(), 500);
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) return name + " cannot be looked at: " + std::strerror(errno);
    if (!is_trusted(info.st_uid))
        return name + " belongs to user " + std::to_string(info.st_uid) + ", expected root or user " +
               std::to_string(geteuid()) + " (chown it, or copy the plugins to a folder of your own)";
    if (is_parent && info.st_mode & S_ISVTX) return "";
    if (info.st_mode & S_IWOTH) return "all users can write to " + name + " (chmod o-w " + name + ")";
    if (info.st_mode & S_IWGRP && !is_private_group(info.st_gid, info.st_uid))
        return "group " + std::to_string(info.st_gid) + " can write to " + name + " (chmod g-w " + name + ")";
    return "";
}

bool TrustedFiles::holds_program(const fs::path& folder) const {
    return std::mismatch(folder.begin(), folder.end(), program_.begin(), program_.end()).first == folder.end();
}

std::string TrustedFiles::fault(const fs::path& path) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error) return printable(path.string(), 500) + " cannot be looked at: " + error.message();
    if (std::string own = fault_of(real, false); !own.empty()) return own;
    for (fs::path parent = real; parent != parent.root_path();) {
        parent = parent.parent_path();
        if (holds_program(parent)) break; // who can write there can replace the program itself
        auto at = folders_.find(parent);
        if (at == folders_.end()) at = folders_.emplace(parent, fault_of(parent, true)).first;
        if (!at->second.empty()) return at->second;
    }
    return "";
}

}  // namespace patchbay::host
