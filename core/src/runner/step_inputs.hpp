// A step's ids, positions and metadata on their way to a device with memory of its own: gathered, sent in one copy.
// Arrays of the same lengths, placed in the same order, get the same addresses in every step, as graphs need. Used by
// PassInputs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "runner/device_memory.hpp"

namespace patchbay::runner {

class StepInputs {
  public:
    explicit StepInputs(const host::Device& device) : device_(&device), memory_(device) {}

    Result<> reserve(uint64_t bytes) { return memory_.allocate(bytes); } // in place of what was: addresses change
    static uint64_t room_for(uint64_t count, uint64_t element_bytes); // that place() takes

    void clear() { staged_.clear(); }
    // Where the values will lie once they are sent; null: they pass what was reserved, and send() says so.
    template <class T>
    const T* place(std::span<const T> values) {
        return reinterpret_cast<const T*>(place(std::as_bytes(values)));
    }
    Result<> send();

    uint64_t bytes() const { return memory_.bytes(); }

  private:
    const std::byte* place(std::span<const std::byte>);

    const host::Device* device_;
    DeviceMemory memory_;
    std::vector<std::byte> staged_;
};

}  // namespace patchbay::runner
