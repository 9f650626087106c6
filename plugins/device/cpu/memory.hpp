// The host's memory, as that of a device.
#pragma once
#include <cstdint>

namespace patchbay {

class CpuMemory { // as sdk/device.hpp wants it
  public:
    void* alloc(uint64_t bytes) const; // zeroed, 64-byte aligned; throws Error. Pages are touched when first used
    void free(void* memory) const;
    void to_device(void* to, const void* from, uint64_t bytes) const;
    void to_host(void* to, const void* from, uint64_t bytes) const;
    void copy_page(void* to, const void* from, uint64_t bytes) const;
};

}  // namespace patchbay
