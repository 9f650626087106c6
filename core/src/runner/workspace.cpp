#include "runner/workspace.hpp"

#include <algorithm>

namespace patchbay::runner {

void* Workspace::take(uint64_t bytes) {
    constexpr uint64_t kChunk = 8ull << 20, kAlign = 64;
    bytes = std::max((bytes + kAlign - 1) / kAlign * kAlign, kAlign);
    for (; chunk_ < chunks_.size(); ++chunk_, offset_ = 0) {
        if (offset_ + bytes > chunks_[chunk_].bytes()) continue;
        void* at = chunks_[chunk_].data() + offset_;
        offset_ += bytes;
        return at;
    }
    DeviceMemory chunk(device_);
    if (!chunk.allocate(std::max(bytes, kChunk)) || !chunk.data()) return nullptr;
    offset_ = bytes;
    return chunks_.emplace_back(std::move(chunk)).data();
}

}  // namespace patchbay::runner
