// What else used the CPUs of the machine while a run was measured, by /proc: the difference of two readings.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "experiment/record.hpp"

namespace patchbay::experiment {

struct CpuTimes { // since boot, over all cores, in ticks
    uint64_t idle = 0, steal = 0, all = 0;
};
// The line "cpu …" of /proc/stat; none: it has another form.
std::optional<CpuTimes> cpu_times_of(const std::string& proc_stat);
struct ProcessUse {
    pid_t parent = 0;
    double ticks = 0; // user and system time
};
// By /proc/PID/stat; none: it has another form.
std::optional<ProcessUse> process_use_of(const std::string& proc_pid_stat);
// So far, of this process, of those that it started, and of the keeper, which stores what happens; 0: this one does.
double experiment_ticks(pid_t keeper);
// own_ticks: CPU time of the experiment's processes between the two.
CpuUse use_between(const CpuTimes& before, const CpuTimes& after, double own_ticks);

class CpuWatch { // from its construction on
  public:
    explicit CpuWatch(pid_t keeper = 0);
    std::optional<CpuUse> use() const; // none: /proc cannot be read

  private:
    const pid_t keeper_;
    std::optional<CpuTimes> before_;
    double ticks_ = 0, load_average_ = 0;
};

}  // namespace patchbay::experiment
