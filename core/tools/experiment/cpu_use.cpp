#include "experiment/cpu_use.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace patchbay::experiment {
namespace {

// What can be read of it. A process may end while it is read of: the buffer throws then, and the stream catches.
std::string whole(const std::string& file) {
    std::ifstream in(file);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

// User and system time of this process and of those that it started and that ended.
double own_ticks() {
    double seconds = 0;
    for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        rusage use{};
        getrusage(who, &use);
        for (const timeval& t : {use.ru_utime, use.ru_stime})
            seconds += static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    }
    return seconds * static_cast<double>(sysconf(_SC_CLK_TCK));
}

// By the kernel's own reading where the machine has one, else by what the processor says of itself.
std::optional<double> mean_mhz() {
    double sum = 0;
    int cores = 0;
    for (; cores < 4096; ++cores) {
        std::ifstream in("/sys/devices/system/cpu/cpu" + std::to_string(cores) + "/cpufreq/scaling_cur_freq");
        double khz = 0;
        if (!(in >> khz)) break;
        sum += khz / 1000;
    }
    if (cores > 0) return sum / cores;
    std::istringstream info(whole("/proc/cpuinfo"));
    for (std::string line; std::getline(info, line);)
        if (line.starts_with("cpu MHz")) {
            sum += std::strtod(line.c_str() + std::min(line.find(':') + 1, line.size()), nullptr);
            cores += 1;
        }
    return cores > 0 ? std::optional(sum / cores) : std::nullopt;
}

}  // namespace

std::optional<CpuTimes> cpu_times_of(const std::string& proc_stat) {
    std::istringstream in(proc_stat);
    std::string name;
    std::array<uint64_t, 8> ticks{}; // user, nice, system, idle, iowait, irq, softirq, steal
    if (!(in >> name) || name != "cpu") return std::nullopt;
    for (uint64_t& t : ticks)
        if (!(in >> t)) return std::nullopt;
    CpuTimes out{ticks[3] + ticks[4], ticks[7], 0};
    for (const uint64_t t : ticks) out.all += t;
    return out;
}

std::optional<ProcessUse> process_use_of(const std::string& proc_pid_stat) {
    constexpr int kBetween = 9; // fields
    const size_t name_end = proc_pid_stat.rfind(')'); // a name may hold anything
    if (name_end == proc_pid_stat.npos) return std::nullopt;
    std::istringstream in(proc_pid_stat.substr(name_end + 1));
    std::string state, between;
    ProcessUse out;
    in >> state >> out.parent;
    for (int i = 0; i < kBetween; ++i) in >> between;
    double user = 0, system = 0;
    if (!(in >> user >> system)) return std::nullopt;
    out.ticks = user + system;
    return out;
}

CpuUse use_between(const CpuTimes& before, const CpuTimes& after, double own_ticks) {
    const double all = static_cast<double>(after.all) - static_cast<double>(before.all);
    if (all <= 0) return {};
    const double steal = static_cast<double>(after.steal) - static_cast<double>(before.steal),
                 idle = static_cast<double>(after.idle) - static_cast<double>(before.idle);
    CpuUse out;
    out.steal = std::clamp(steal / all, 0.0, 1.0);
    out.others = std::clamp((all - idle - steal - own_ticks) / all, 0.0, 1.0); // ticks are coarse
    return out;
}

CpuWatch::CpuWatch(pid_t keeper)
    : keeper_(keeper), before_(cpu_times_of(whole("/proc/stat"))), ticks_(experiment_ticks(keeper)) {
    load_average_ = std::strtod(whole("/proc/loadavg").c_str(), nullptr);
}

double experiment_ticks(pid_t keeper) {
    double out = own_ticks();
    std::error_code error;
    for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        if (name.find_first_not_of("0123456789") != name.npos) continue;
        const auto use = process_use_of(whole("/proc/" + name + "/stat"));
        if (use && (use->parent == getpid() || (keeper > 0 && name == std::to_string(keeper)))) out += use->ticks;
    }
    return out;
}

std::optional<CpuUse> CpuWatch::use() const {
    const auto after = cpu_times_of(whole("/proc/stat"));
    if (!before_ || !after) return std::nullopt;
    CpuUse out = use_between(*before_, *after, experiment_ticks(keeper_) - ticks_);
    out.load_average = load_average_;
    out.mhz = mean_mhz();
    return out;
}

}  // namespace patchbay::experiment
