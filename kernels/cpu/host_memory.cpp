#include "kernels/host_memory.hpp"

#include <algorithm>
#include <fstream>
#include <string>

namespace patchbay::kernels {
namespace {

namespace fs = std::filesystem;

uint64_t number_in(const fs::path& file) { // 0: there is none, or "max"
    uint64_t out = 0;
    std::ifstream(file) >> out;
    return out;
}

// After `key` and white space; 0: there is none.
uint64_t number_in(const fs::path& file, const std::string& key) {
    std::ifstream in(file);
    std::string word;
    for (uint64_t value = 0; in >> word; in.ignore(4096, '\n'))
        if (word == key && in >> value) return value;
    return 0;
}

void lower(HostMemory& out, uint64_t limit, uint64_t used, uint64_t cached) {
    if (limit < out.total) out.total = limit, out.limited = true;
    out.available = std::min(out.available, limit - std::min(limit, used - std::min(used, cached)));
}

// The folder of a group below `mount`, and those above it: a limit of any of them holds. What files are cached in is
// given back when the group needs it, as in MemAvailable.
void read_groups(const fs::path& mount, const fs::path& group, HostMemory& out) {
    for (fs::path at = group.relative_path();; at = at.parent_path()) {
        const fs::path folder = mount / at, stat = folder / "memory.stat";
        if (const uint64_t limit = number_in(folder / "memory.max")) // version 2
            lower(out, limit, number_in(folder / "memory.current"),
                  number_in(stat, "active_file") + number_in(stat, "inactive_file"));
        if (const uint64_t limit = number_in(folder / "memory.limit_in_bytes")) // version 1; without one it is huge
            lower(out, limit, number_in(folder / "memory.usage_in_bytes"),
                  number_in(stat, "total_active_file") + number_in(stat, "total_inactive_file"));
        if (at.empty()) return;
    }
}

}  // namespace

HostMemory host_memory(const fs::path& root) {
    HostMemory out;
    out.total = 1024 * number_in(root / "proc/meminfo", "MemTotal:");
    out.available = 1024 * number_in(root / "proc/meminfo", "MemAvailable:");
    std::ifstream groups(root / "proc/self/cgroup"); // "0::/a/b", of version 1 "5:memory:/a/b"
    for (std::string line; std::getline(groups, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == line.npos || second == line.npos) continue;
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        const fs::path group = line.substr(second + 1), mounts = root / "sys/fs/cgroup";
        if (controllers == ",,") read_groups(mounts, group, out);
        if (controllers.find(",memory,") != controllers.npos) read_groups(mounts / "memory", group, out);
    }
    return out;
}

}  // namespace patchbay::kernels
