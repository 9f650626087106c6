// A step's ids, positions and metadata on their way to a device with memory of its own: gathered, sent in one copy.
// Arrays of the same lengths, placed in the same order, get the same addresses in every step, as graphs need. Used by
// PassInputs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "host/component.hpp"

namespace patchbay::runner {

class StepInputs {
  public:
    explicit StepInputs(const host::Device& device) : device_(&device) {}
    ~StepInputs();
    StepInputs(const StepInputs&) = delete;
    StepInputs& operator=(const StepInputs&) = delete;

    Result<> reserve(uint64_t bytes); // in place of what was: addresses change
    static uint64_t room_for(uint64_t count, uint64_t element_bytes); // that place() takes

    void clear() { staged_.clear(); }
    // Where the values will lie once they are sent; null: they pass what was reserved, and send() says so.
    template <class T>
    const T* place(std::span<const T> values) {
        return reinterpret_cast<const T*>(place(std::as_bytes(values)));
    }
    Result<> send();

    uint64_t bytes() const { return reserved_; }

  private:
    const std::byte* place(std::span<const std::byte>);

    const host::Device* device_;
    std::byte* memory_ = nullptr;
    uint64_t reserved_ = 0;
    std::vector<std::byte> staged_;
};

}  // namespace patchbay::runner
