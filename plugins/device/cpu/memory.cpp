#include "memory.hpp"

#include <cstdlib>
#include <cstring>

#include "kernels/memory_nodes.hpp"
#include "patchbay/plugin.hpp"

namespace patchbay {

constexpr uint64_t kAlignment = 64;

// calloc, since it does not touch the fresh pages of a large block: a pool of KV that is never filled costs nothing.
// The pointer that it returned is stored just before the memory.
void* CpuMemory::alloc(uint64_t bytes) const {
    constexpr uint64_t kExtra = kAlignment + sizeof(void*);
    void* block = bytes < UINT64_MAX - kExtra ? std::calloc(1, bytes + kExtra) : nullptr;
    if (!block) throw Error(PB_FAILED, "cannot allocate " + std::to_string(bytes) + " bytes of host memory");
    const auto from = reinterpret_cast<uintptr_t>(block) + sizeof(void*);
    auto* memory = reinterpret_cast<char*>((from + kAlignment - 1) / kAlignment * kAlignment);
    kernels::place_large(memory, bytes);
    std::memcpy(memory - sizeof(void*), &block, sizeof(void*));
    return memory;
}

void CpuMemory::free(void* memory) const {
    if (!memory) return;
    void* block;
    std::memcpy(&block, static_cast<char*>(memory) - sizeof(void*), sizeof(void*));
    std::free(block);
}

void CpuMemory::to_device(void* to, const void* from, uint64_t bytes) const { std::memmove(to, from, bytes); }
void CpuMemory::to_host(void* to, const void* from, uint64_t bytes) const { std::memmove(to, from, bytes); }
void CpuMemory::copy_page(void* to, const void* from, uint64_t bytes) const { std::memmove(to, from, bytes); }

}  // namespace patchbay
