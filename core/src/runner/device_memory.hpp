// Memory of a device, given back when this ends.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.hpp"
#include "host/component.hpp"

namespace patchbay::runner {

class DeviceMemory {
  public:
    explicit DeviceMemory(const host::Device& device) : device_(&device) {} // which outlives it
    DeviceMemory(DeviceMemory&& other) noexcept
        : device_(other.device_), data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    DeviceMemory& operator=(DeviceMemory&&) = delete;
    ~DeviceMemory() { release(); }

    Result<> allocate(uint64_t bytes) { // exactly so much, in place of what there was
        release();
        void* data = nullptr;
        PB_CHECK(device_->checked<&pb_device::alloc>(bytes, &data));
        data_ = static_cast<std::byte*>(data);
        bytes_ = bytes;
        return {};
    }
    Result<std::byte*> room(uint64_t bytes) { // grows to that and some more; what it held is gone then
        if (!data_ || bytes > bytes_) PB_CHECK(allocate(std::max<uint64_t>(bytes + bytes / 2, 64)));
        return data_;
    }
    void release() {
        if (data_) device_->call<&pb_device::free>(std::exchange(data_, nullptr));
        bytes_ = 0;
    }
    std::byte* data() const { return data_; } // null: there is none, or the device computes nothing
    uint64_t bytes() const { return bytes_; }

  private:
    const host::Device* device_;
    std::byte* data_ = nullptr;
    uint64_t bytes_ = 0;
};

}  // namespace patchbay::runner
