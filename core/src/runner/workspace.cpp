#include "runner/workspace.hpp"

#include <algorithm>

namespace patchbay::runner {

Workspace::~Workspace() {
    for (const Chunk& c : chunks_) device_->call<&pb_device::free>(c.data);
}

void* Workspace::take(uint64_t bytes) {
    constexpr uint64_t kChunk = 8ull << 20, kAlign = 64;
    bytes = std::max((bytes + kAlign - 1) / kAlign * kAlign, kAlign);
    for (; chunk_ < chunks_.size(); ++chunk_, offset_ = 0) {
        if (offset_ + bytes > chunks_[chunk_].bytes) continue;
        void* at = static_cast<char*>(chunks_[chunk_].data) + offset_;
        offset_ += bytes;
        return at;
    }
    void* data = nullptr;
    const uint64_t size = std::max(bytes, kChunk);
    if (device_->call<&pb_device::alloc>(size, &data) != PB_OK || !data) return nullptr;
    chunks_.push_back({data, size});
    offset_ = bytes;
    return data;
}

}  // namespace patchbay::runner
