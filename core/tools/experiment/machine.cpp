#include "experiment/machine.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>

#include "base/cores.hpp"
#include "base/json_file.hpp"
#include "base/sha256.hpp"

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

// Not of the file that its name leads to now: a build may have put another one there.
std::string program_digest() {
    constexpr uint64_t kMaxBytes = 4ull << 30;
    const auto bytes = read_whole_file("/proc/self/exe", kMaxBytes);
    return bytes ? sha256_hex(*bytes) : "";
}

}  // namespace

MachineFacts machine_facts() {
    MachineFacts f;
    f.cpu = value_in("/proc/cpuinfo", "model name", ':');
    f.os = value_in("/etc/os-release", "PRETTY_NAME", '=');
    utsname names{};
    if (uname(&names) == 0) f.kernel = std::string(names.sysname) + " " + names.release + " " + names.machine;
    f.cores = allowed_cores();
    f.memory_bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
    f.build =
#ifdef __clang__
        "clang " __clang_version__;
#else
        "gcc " __VERSION__;
#endif
    f.program_sha256 = program_digest();
    return f;
}

}  // namespace patchbay::experiment
