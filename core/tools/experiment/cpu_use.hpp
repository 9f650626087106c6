// What else used the CPUs of the machine while a run was measured, by /proc: the difference of two readings.
#pragma once
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
// own_ticks: CPU time of this process between the two.
CpuUse use_between(const CpuTimes& before, const CpuTimes& after, double own_ticks);

class CpuWatch { // from its construction on
  public:
    CpuWatch();
    std::optional<CpuUse> use() const; // none: /proc cannot be read

  private:
    std::optional<CpuTimes> before_;
    double own_ticks_ = 0, load_average_ = 0;
};

}  // namespace patchbay::experiment
