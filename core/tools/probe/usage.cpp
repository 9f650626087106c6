#include "probe/usage.hpp"

#include <sys/stat.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace patchbay::probe {
namespace {

namespace fs = std::filesystem;

std::string process_folder(pid_t pid) { return "/proc/" + std::to_string(pid); }

void add_children(pid_t pid, std::vector<pid_t>& out) {
    std::error_code gone; // processes end while they are looked at
    for (fs::directory_iterator at(process_folder(pid) + "/task", gone), end; !gone && at != end; at.increment(gone)) {
        std::ifstream in(at->path() / "children");
        for (pid_t child = 0; in >> child;) out.push_back(child);
    }
}

// The sum of "Name:   123 kB" or "Name:   123" over these names.
uint64_t sum_of(const std::string& file, std::initializer_list<std::string_view> names) {
    std::ifstream in(file);
    uint64_t sum = 0;
    for (std::string line; std::getline(in, line);)
        for (const std::string_view name : names)
            if (line.starts_with(name) && line.substr(name.size()).starts_with(':')) {
                uint64_t value = 0;
                if (std::istringstream(line.substr(name.size() + 1)) >> value) sum += value;
            }
    return sum;
}

}  // namespace

std::vector<pid_t> descendants(pid_t pid) {
    std::vector<pid_t> out;
    add_children(pid, out);
    for (size_t i = 0; i < out.size(); ++i) add_children(out[i], out);
    return out;
}

Usage usage_of(const std::vector<pid_t>& pids, uint64_t memory_limit) {
    Usage usage;
    for (const pid_t pid : pids) {
        const std::string status = process_folder(pid) + "/status";
        usage.memory += sum_of(status, {"RssAnon", "RssShmem", "VmSwap"}) << 10;
        usage.tasks += sum_of(status, {"Threads"});
    }
    if (memory_limit == 0 || usage.memory <= memory_limit || pids.size() < 2) return usage;
    usage.memory = 0; // of pages that several have mapped, each counts its part: slower to read
    for (const pid_t pid : pids)
        usage.memory += sum_of(process_folder(pid) + "/smaps_rollup", {"Pss_Anon", "Pss_Shmem", "SwapPss"}) << 10;
    return usage;
}

uint64_t tasks_of_user(uid_t user) {
    uint64_t tasks = 0;
    std::error_code gone;
    for (fs::directory_iterator at("/proc", gone), end; !gone && at != end; at.increment(gone)) {
        const std::string name = at->path().filename().string();
        struct stat info {};
        if (name.find_first_not_of("0123456789") != name.npos || stat(at->path().c_str(), &info) != 0) continue;
        if (info.st_uid == user) tasks += sum_of(at->path() / "status", {"Threads"});
    }
    return tasks;
}

}  // namespace patchbay::probe
