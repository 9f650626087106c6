#include <cstdlib>
#include <new>

#include "kernels/cpu.hpp"
#include "kernels/memory_nodes.hpp"

namespace patchbay::kernels {
namespace {

constexpr uint64_t kLine = 64, kHugePage = 2 << 20;

uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

void AlignedFree::operator()(void* p) const { std::free(p); }

AlignedBytes allocate_aligned(uint64_t bytes) {
    const uint64_t unit = bytes < kHugePage ? kLine : kHugePage;
    if (bytes > UINT64_MAX - unit) throw std::bad_alloc();
    const uint64_t rounded = round_up(bytes, unit);
    AlignedBytes memory(static_cast<uint8_t*>(std::aligned_alloc(unit, rounded)));
    if (!memory) throw std::bad_alloc();
    place_large(memory.get(), rounded);
    return memory;
}

std::shared_ptr<uint8_t[]> MatrixMemory::take(uint64_t bytes) {
    constexpr uint64_t kShared = 8 * kHugePage; // of which only pages that are written to are there
    if (bytes >= kHugePage) return allocate_aligned(bytes);
    const std::lock_guard lock(turn_);
    if (!shared_ || kShared - taken_ < bytes) {
        shared_ = allocate_aligned(kShared);
        taken_ = 0;
    }
    const std::shared_ptr<uint8_t[]> part(shared_, shared_.get() + taken_);
    taken_ += round_up(bytes, kLine);
    return part;
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
