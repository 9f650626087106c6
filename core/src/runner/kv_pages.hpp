// The memory of KV pages on a device, of all layers and of the models that share it. Part of KvMemory.
#pragma once
#include <cstdint>

#include "base/result.hpp"
#include "host/component.hpp"
#include "kv/block_pool.hpp"

namespace patchbay::runner {

class KvPages {
  public:
    explicit KvPages(const host::Device& device) : device_(device) {} // which outlives it
    ~KvPages() { release(); }
    KvPages(const KvPages&) = delete;
    KvPages& operator=(const KvPages&) = delete;

    Result<> allocate(uint32_t count, uint64_t page_bytes); // in place of what was
    void release();                                         // none is left

    uint32_t count() const { return count_; }
    uint8_t* page(kv::BlockId id) const { // null on a device that computes nothing
        return memory_ ? static_cast<uint8_t*>(memory_) + static_cast<uint64_t>(id) * page_bytes_ : nullptr;
    }

  private:
    const host::Device& device_;
    void* memory_ = nullptr; // (count, page_bytes)
    uint32_t count_ = 0;
    uint64_t page_bytes_ = 0;
};

}  // namespace patchbay::runner
