// Temporary tensors of a pass: a bump allocator over device memory, reset before each. The same sequence of requests
// gets the same addresses, which graph capture needs. Its memory is a small multiple of what the largest pass took.
#pragma once
#include <cstdint>
#include <vector>

#include "runner/device_memory.hpp"

namespace patchbay::runner {

class Workspace {
  public:
    explicit Workspace(const host::Device& device) : device_(device) {}

    void reset(); // tensors of the pass before are gone
    void* take(uint64_t bytes); // 64-byte aligned, not zeroed; null: the device has no memory left
    // From now on graphs have the addresses of what was taken: it stays where it is, and new memory comes beside it.
    void hold() { is_held_ = true; }

  private:
    bool add_chunk(uint64_t bytes);
    uint64_t held_bytes() const;

    const host::Device& device_;
    std::vector<DeviceMemory> chunks_;
    size_t chunk_ = 0;
    uint64_t offset_ = 0;
    uint64_t taken_ = 0; // by this pass
    bool is_held_ = false, was_joined_ = false;
};

}  // namespace patchbay::runner
