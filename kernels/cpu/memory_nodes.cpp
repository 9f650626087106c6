#include "kernels/memory_nodes.hpp"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(__linux__)
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace patchbay::kernels {
namespace {

constexpr uint64_t kHugePage = 2 << 20;
constexpr unsigned long kMaxNodes = 64;

// The rest of the first line of the file that begins so.
bool read_line(const std::filesystem::path& path, const char* begins, char* line, int size) {
    std::FILE* file = std::fopen(path.c_str(), "re");
    if (!file) return false;
    const size_t length = std::strlen(begins);
    bool found = false;
    while (!found && std::fgets(line, size, file)) found = std::strncmp(line, begins, length) == 0;
    std::fclose(file);
    if (found) std::memmove(line, line + length, std::strlen(line + length) + 1);
    return found;
}

// Those that numactl (--membind, --interleave, --preferred) chose for this thread, all where it chose none: a policy of
// the memory's own would take its place.
uint64_t nodes_of_policy() {
#if defined(__linux__)
    constexpr unsigned long kMaxPossible = 1024; // fewer than the kernel may know are refused
    uint64_t nodes[kMaxPossible / 64] = {};
    int mode = 0;
    if (syscall(SYS_get_mempolicy, &mode, nodes, kMaxPossible + 1, nullptr, 0UL) == 0 && nodes[0] != 0) return nodes[0];
#endif
    return ~uint64_t{0};
}

// What lies between the first and the last boundary of `unit` in the memory.
bool whole(void* memory, uint64_t bytes, uint64_t unit, void*& from, uint64_t& length) {
    const auto begin = (reinterpret_cast<uintptr_t>(memory) + unit - 1) / unit * unit;
    const auto end = (reinterpret_cast<uintptr_t>(memory) + bytes) / unit * unit;
    from = reinterpret_cast<void*>(begin);
    length = end > begin ? end - begin : 0;
    return length > 0;
}

}  // namespace

uint64_t nodes_in(const char* list) {
    uint64_t out = 0;
    while (*list >= '0' && *list <= '9') {
        char* rest;
        const unsigned long first = std::strtoul(list, &rest, 10);
        const unsigned long last = *rest == '-' ? std::strtoul(rest + 1, &rest, 10) : first;
        for (unsigned long node = first; node <= last && node < kMaxNodes; ++node) out |= uint64_t{1} << node;
        list = *rest == ',' ? rest + 1 : rest;
    }
    return out;
}

uint64_t memory_nodes(const std::filesystem::path& root) {
    char line[1024];
    if (!read_line(root / "sys/devices/system/node/has_memory", "", line, sizeof line)) return 0;
    const uint64_t there = nodes_in(line) & nodes_of_policy();
    if (!read_line(root / "proc/self/status", "Mems_allowed_list:\t", line, sizeof line)) return there;
    return there & nodes_in(line);
}

bool interleave(void* memory, uint64_t bytes, uint64_t nodes) {
#if defined(__linux__)
    void* from;
    uint64_t length;
    if (!whole(memory, bytes, static_cast<uint64_t>(sysconf(_SC_PAGESIZE)), from, length)) return true;
    const unsigned long mask = nodes;
    return syscall(SYS_mbind, from, length, MPOL_INTERLEAVE, &mask, kMaxNodes + 1, 0) == 0; // one more: it counts so
#else
    (void)memory, (void)bytes, (void)nodes;
    return false;
#endif
}

void place_large(void* memory, uint64_t bytes) {
    if (bytes < kHugePage) return;
#if defined(__linux__)
    void* from;
    uint64_t length;
    if (whole(memory, bytes, kHugePage, from, length)) (void)madvise(from, length, MADV_HUGEPAGE);
#endif
    static const uint64_t nodes = memory_nodes();
    if (std::popcount(nodes) > 1) (void)interleave(memory, bytes, nodes);
}

}  // namespace patchbay::kernels
