#include "base/cores.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

namespace patchbay {
namespace {

namespace fs = std::filesystem;

void lower(std::optional<double>& out, double quota_us, double period_us) {
    if (quota_us > 0 && period_us > 0) out = std::min(out.value_or(HUGE_VAL), quota_us / period_us);
}

double number_in(const fs::path& file) { // 0: there is none, or "max"
    double out = 0;
    std::ifstream(file) >> out;
    return out;
}

// The folder of a group below `mount`, and those above it: a limit of any of them holds.
void read_groups(const fs::path& mount, const fs::path& group, std::optional<double>& out) {
    for (fs::path at = group.relative_path();; at = at.parent_path()) {
        const fs::path folder = mount / at;
        double quota = 0, period = 0;
        std::ifstream(folder / "cpu.max") >> quota >> period; // version 2: "150000 100000" or "max 100000"
        lower(out, quota, period);
        lower(out, number_in(folder / "cpu.cfs_quota_us"), number_in(folder / "cpu.cfs_period_us")); // version 1
        if (at.empty()) return;
    }
}

}  // namespace

uint32_t allowed_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return static_cast<uint32_t>(CPU_COUNT(&set));
    return std::max(1u, std::thread::hardware_concurrency()); // of a machine of more cores than a set holds
}

std::optional<double> core_quota(const fs::path& root) {
    std::optional<double> out;
    std::ifstream groups(root / "proc/self/cgroup"); // "0::/a/b", of version 1 "3:cpu,cpuacct:/a/b"
    for (std::string line; std::getline(groups, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == line.npos || second == line.npos) continue;
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        const fs::path group = line.substr(second + 1), mounts = root / "sys/fs/cgroup";
        if (controllers == ",,") read_groups(mounts, group, out);
        if (controllers.find(",cpu,") != controllers.npos) read_groups(mounts / "cpu", group, out);
    }
    return out;
}

uint32_t usable_cores() {
    const uint32_t allowed = allowed_cores();
    const auto quota = core_quota();
    return quota ? std::clamp(static_cast<uint32_t>(std::ceil(std::min(*quota, 1e6))), 1u, allowed) : allowed;
}

}  // namespace patchbay
