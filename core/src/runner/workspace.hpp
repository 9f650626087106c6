// Temporary tensors of a step: a bump allocator over device memory, reset every step. The same sequence of requests
// gets the same addresses, which graph capture needs.
#pragma once
#include <cstdint>
#include <vector>

#include "runner/device_memory.hpp"

namespace patchbay::runner {

class Workspace {
  public:
    explicit Workspace(const host::Device& device) : device_(device) {}

    void reset() { chunk_ = 0, offset_ = 0; }
    void* take(uint64_t bytes); // 64-byte aligned, not zeroed; null: the device has no memory left

  private:
    const host::Device& device_;
    std::vector<DeviceMemory> chunks_;
    size_t chunk_ = 0;
    uint64_t offset_ = 0;
};

}  // namespace patchbay::runner
