#include "conformance/lent_memory.hpp"

#include <algorithm>

namespace patchbay::conformance {
namespace {

constexpr size_t kGuards = 256; // bytes after each block
constexpr std::byte kGuard{0x5a}, kOver{0xa5};

}  // namespace

std::byte* LentMemory::place(const void* bytes, size_t size) {
    std::vector<std::byte>& block = blocks_.emplace_back(size + kGuards, kGuard);
    if (size > 0) std::memcpy(block.data(), bytes, size);
    return block.data();
}

bool LentMemory::end_call() {
    bool intact = true;
    for (; ended_ < blocks_.size(); ++ended_) {
        std::vector<std::byte>& block = blocks_[ended_];
        intact &= std::all_of(block.end() - kGuards, block.end(), [](std::byte b) { return b == kGuard; });
        if (after_ == After::kOverwritten) std::fill(block.begin(), block.end(), kOver);
    }
    return intact;
}

}  // namespace patchbay::conformance
