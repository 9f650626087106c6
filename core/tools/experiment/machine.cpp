#include "experiment/machine.hpp"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>

namespace patchbay::experiment {
namespace {

// What follows `key` and `separator` on the first line that starts with `key`.
std::string value_in(const char* file, const std::string& key, char separator) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with(key)) continue;
        const size_t at = line.find(separator);
        if (at == line.npos) continue;
        const size_t first = line.find_first_not_of(" \t\"", at + 1), last = line.find_last_not_of(" \t\"");
        return first == line.npos ? "" : line.substr(first, last - first + 1);
    }
    return "";
}

std::string first_line(const std::filesystem::path& file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line;
}

// Read without running git: HEAD is a commit or names a branch.
std::string commit_of(const std::filesystem::path& root) {
    const std::string head = root.empty() ? "" : first_line(root / ".git" / "HEAD");
    constexpr std::string_view kRef = "ref: ";
    return head.starts_with(kRef) ? first_line(root / ".git" / head.substr(kRef.size())) : head;
}

}  // namespace

MachineFacts machine_facts(const std::filesystem::path& source_root) {
    MachineFacts f;
    f.cpu = value_in("/proc/cpuinfo", "model name", ':');
    f.os = value_in("/etc/os-release", "PRETTY_NAME", '=');
    utsname names{};
    if (uname(&names) == 0) f.kernel = std::string(names.sysname) + " " + names.release + " " + names.machine;
    cpu_set_t set;
    CPU_ZERO(&set);
    f.cores = sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<uint32_t>(CPU_COUNT(&set)) : 0;
    f.memory_bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
    f.build =
#ifdef __clang__
        "clang " __clang_version__;
#else
        "gcc " __VERSION__;
#endif
    f.commit = commit_of(source_root);
    return f;
}

}  // namespace patchbay::experiment
