// Pages in host memory, of sequences that wait while others need the room, and what it takes to copy one. Part of
// KvMemory.
#pragma once
#include <cstdint>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "host/component.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::runner {

class HostPages {
  public:
    HostPages(const host::Device& device, const pb_device_info& info, Clock& clock)
        : device_(device), info_(info), clock_(clock) {}
    ~HostPages();
    HostPages(const HostPages&) = delete;
    HostPages& operator=(const HostPages&) = delete;

    // Once. `page`: one of the device's, which stays as it is: copies of it are timed.
    Result<> allocate(uint32_t slots, uint64_t page_bytes, void* page);
    uint32_t slots() const { return slots_; }
    // Inside a step, in order with its ops. `page`: of the device; null where it computes nothing.
    Result<> copy(kv::Way, kv::BlockId slot, void* page);
    // For a page, one way: as it was at load, then on average of late ones where the host sees when a copy is done.
    double ns_a_page() const { return ns_a_page_; }

  private:
    Result<> measure(void* page);
    bool has_own_calls() const { return device_.extension<pb_device_offload>() != nullptr; }
    void* slot(kv::BlockId) const;

    const host::Device& device_;
    const pb_device_info& info_;
    Clock& clock_;
    void* memory_ = nullptr; // (slots, page_bytes); null where the device computes nothing
    uint32_t slots_ = 0;
    uint64_t page_bytes_ = 0;
    double ns_a_page_ = 0;
};

}  // namespace patchbay::runner
