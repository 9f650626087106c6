// How much memory the host has for this process.
#pragma once
#include <cstdint>
#include <filesystem>

namespace patchbay::kernels {

// In bytes; 0: the system does not say. Of the machine, or of the control group that leaves less (docker --memory, a
// limit of Kubernetes), the smallest of its groups; `limited` says that one does.
struct HostMemory {
    uint64_t total = 0, available = 0;
    bool limited = false;
};
HostMemory host_memory(const std::filesystem::path& root = "/"); // root: above proc and sys

}  // namespace patchbay::kernels
