#include "runner/workspace.hpp"

#include <algorithm>

namespace patchbay::runner {

constexpr uint64_t kChunk = 8ull << 20;

bool Workspace::add_chunk(uint64_t bytes) {
    DeviceMemory chunk(device_);
    if (!chunk.allocate(std::max(bytes, kChunk)) || !chunk.data()) return false;
    chunks_.push_back(std::move(chunk));
    return true;
}

uint64_t Workspace::held_bytes() const {
    uint64_t out = 0;
    for (const DeviceMemory& chunk : chunks_) out += chunk.bytes();
    return out;
}

// Of several chunks most are too small for a larger pass, which would add its own again: one takes their place. The
// first has just the size of the pass, which is the largest where that was run first; later ones have room to grow.
void Workspace::reset() {
    if (chunks_.size() > 1 && !is_held_) {
        chunks_.clear();
        add_chunk(was_joined_ ? taken_ + taken_ / 2 : taken_); // where there is no memory, chunk by chunk again
        was_joined_ = true;
    }
    chunk_ = 0;
    offset_ = taken_ = 0;
}

void* Workspace::take(uint64_t bytes) {
    constexpr uint64_t kAlign = 64;
    bytes = std::max((bytes + kAlign - 1) / kAlign * kAlign, kAlign);
    while (chunk_ < chunks_.size() && offset_ + bytes > chunks_[chunk_].bytes()) ++chunk_, offset_ = 0;
    // Of chunks that stay, each is half of all before it: the last of a few holds any pass.
    if (chunk_ == chunks_.size() && !add_chunk(is_held_ ? std::max(bytes, held_bytes() / 2) : bytes)) return nullptr;
    void* const at = chunks_[chunk_].data() + offset_;
    offset_ += bytes;
    taken_ += bytes;
    return at;
}

}  // namespace patchbay::runner
