// Buffers of the host's in the memory of a device, for checks of what runs there: samplers and attention.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "host/component.hpp"

namespace patchbay::conformance {

// Sent when it is made, fetched by fetch().
class DeviceBuffer {
  public:
    static Result<std::unique_ptr<DeviceBuffer>> send(const host::Component& device, void* here, size_t bytes) {
        std::unique_ptr<DeviceBuffer> out(new DeviceBuffer(device, here, bytes));
        PB_CHECK(device.check(out->table().alloc(device.self(), std::max<size_t>(bytes, 1), &out->memory_), "alloc"));
        PB_CHECK(device.check(out->table().to_device(device.self(), out->memory_, here, bytes), "to_device"));
        return out;
    }
    ~DeviceBuffer() {
        if (memory_) table().free(device_.self(), memory_);
    }
    template <class T>
    T* at() const {
        return static_cast<T*>(memory_);
    }
    Result<> fetch() const {
        return device_.check(table().to_host(device_.self(), here_, memory_, bytes_), "to_host");
    }

  private:
    DeviceBuffer(const host::Component& device, void* here, size_t bytes)
        : device_(device), here_(here), bytes_(bytes) {}
    const pb_device& table() const { return *static_cast<const pb_device*>(device_.type().vtable); }

    const host::Component& device_;
    void* here_;
    size_t bytes_;
    void* memory_ = nullptr;
};

template <class T>
Result<std::unique_ptr<DeviceBuffer>> send(const host::Component& device, std::vector<T>& values) {
    return DeviceBuffer::send(device, values.data(), values.size() * sizeof(T));
}

}  // namespace patchbay::conformance
