// The memory of KV pages on a device, of all layers and of the models that share it. Part of KvMemory.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>

#include "base/refusals.hpp"
#include "kv/block_pool.hpp"
#include "runner/device_memory.hpp"

namespace patchbay::runner {

class KvPages {
  public:
    explicit KvPages(const host::Device& device) : memory_(device) {} // which outlives it

    Result<> allocate(uint32_t count, uint64_t page_bytes) { // in place of what was
        release();
        if (count > UINT64_MAX / std::max<uint64_t>(page_bytes, 1))
            return invalid(std::to_string(count) + " KV pages of " + std::to_string(page_bytes) +
                           " bytes are more than can be counted");
        count_ = count;
        page_bytes_ = page_bytes;
        return memory_.allocate(uint64_t{count} * page_bytes);
    }
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
