// How many cores this process has.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

namespace patchbay {

// The cores that threads of this process may run on, by its affinity (taskset, cpusets, mpirun --bind-to); 1 or more.
uint32_t allowed_cores();

// The processor time that a control group leaves this process, in cores: 1.5 for 150 ms of each 100 ms (docker
// --cpus, a limit of Kubernetes), the smallest of its groups; none: there is no limit. root: above proc and sys.
std::optional<double> core_quota(const std::filesystem::path& root = "/");

// As many threads as are worth starting: the allowed cores, or fewer where the quota is below them (rounded up).
uint32_t usable_cores();

}  // namespace patchbay
