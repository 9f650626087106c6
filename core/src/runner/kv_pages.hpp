// The memory of KV pages on a device, of all layers and of the models that share it. Part of KvMemory.
#pragma once
#include <cstdint>

#include "base/result.hpp"
#include "kv/block_pool.hpp"
#include "runner/device_memory.hpp"

namespace patchbay::runner {

class KvPages {
  public:
    explicit KvPages(const host::Device& device) : memory_(device) {} // which outlives it

    Result<> allocate(uint32_t count, uint64_t page_bytes); // in place of what was
    void release() { // none is left
        memory_.release();
        count_ = 0;
    }

    uint32_t count() const { return count_; }
    uint8_t* page(kv::BlockId id) const { // null on a device that computes nothing
        auto* const first = reinterpret_cast<uint8_t*>(memory_.data());
        return first ? first + static_cast<uint64_t>(id) * page_bytes_ : nullptr;
    }

  private:
    DeviceMemory memory_; // (count, page_bytes)
    uint32_t count_ = 0;
    uint64_t page_bytes_ = 0;
};

}  // namespace patchbay::runner
