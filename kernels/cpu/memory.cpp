#include <cstdlib>
#include <new>

#include "kernels/cpu.hpp"
#include "kernels/memory_nodes.hpp"

namespace patchbay::kernels {

void AlignedFree::operator()(void* p) const { std::free(p); }

AlignedBytes allocate_aligned(uint64_t bytes) {
    constexpr uint64_t kLine = 64, kHugePage = 2 << 20;
    const uint64_t unit = bytes < kHugePage ? kLine : kHugePage;
    if (bytes > UINT64_MAX - unit) throw std::bad_alloc();
    const uint64_t rounded = (bytes + unit - 1) / unit * unit;
    AlignedBytes memory(static_cast<uint8_t*>(std::aligned_alloc(unit, rounded)));
    if (!memory) throw std::bad_alloc();
    place_large(memory.get(), rounded);
    return memory;
}

void* Scratch::at_least(uint64_t bytes) {
    if (bytes <= bytes_) return memory_.get();
    memory_.reset(); // the old and the new need not be there together
    bytes_ = 0;
    memory_ = allocate_aligned(bytes);
    bytes_ = bytes;
    return memory_.get();
}

}  // namespace patchbay::kernels
