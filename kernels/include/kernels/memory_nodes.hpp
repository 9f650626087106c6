// The placement of large memory on a machine with several memory nodes (NUMA). For the memory of packed weights and of
// KV.
#pragma once
#include <cstdint>
#include <filesystem>

namespace patchbay::kernels {

// A set of nodes below 64, as bits. "0-1,4" is the kernel's format; unreadable parts add none.
uint64_t nodes_in(const char* list);
// Nodes that have memory and that this process may and, by numactl, is to use; 0: the system does not say. root: above
// proc and sys.
uint64_t memory_nodes(const std::filesystem::path& root = "/");
// Untouched pages of the memory will be interleaved over these nodes. Only whole pages within it. False: the
// system refuses.
bool interleave(void* memory, uint64_t bytes, uint64_t nodes);

// For untouched memory from 2 MiB on: requests huge pages, interleaved over all memory nodes. If the system refuses,
// the memory still works.
void place_large(void* memory, uint64_t bytes);

}  // namespace patchbay::kernels
