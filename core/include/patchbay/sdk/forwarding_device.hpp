// patchbay/sdk/forwarding_device.hpp - a device whose every call is another device's. Derive from it, and write the
// calls that you observe or change; the others stay the inner device's. See docs/devices.md.
#pragma once
#include <string>
#include <utility>

#include "patchbay/sdk/device.hpp"
#include "patchbay/sdk/inner_device.hpp"

namespace patchbay {

class ForwardingDevice {
  public:
    // As InnerDevice: in a constructor only; throws Error where there is no device of that name.
    ForwardingDevice(const Context& context, std::string inner)
        : name_(std::move(inner)), inner_(context, name_) {}

    // Attention and samplers of the inner device serve this one. Throws Error(PB_UNSUPPORTED) if it computes nothing.
    pb_device_info info() const {
        auto out = sized<pb_device_info>();
        inner_.check(table().info(self(), &out));
        if (!out.computes) throw Error(PB_UNSUPPORTED, "an inner device that computes nothing");
        if (!out.compatible_with[0]) name_.copy(out.compatible_with, sizeof out.compatible_with - 1);
        return out;
    }
    void* alloc(uint64_t bytes) {
        void* out = nullptr;
        inner_.check(table().alloc(self(), bytes, &out));
        return out;
    }
    void free(void* memory) { table().free(self(), memory); }
    void to_device(void* to, const void* from, uint64_t n) { inner_.check(table().to_device(self(), to, from, n)); }
    void to_host(void* to, const void* from, uint64_t n) { inner_.check(table().to_host(self(), to, from, n)); }
    void copy_page(void* to, const void* from, uint64_t n) { inner_.check(table().copy_page(self(), to, from, n)); }
    pb_weight* prepare(const pb_weight_source& source) {
        pb_weight* out = nullptr;
        inner_.check(table().prepare(self(), &source, &out));
        return out;
    }
    void release(pb_weight* w) { table().release(self(), w); }
    uint64_t weight_bytes(const pb_weight* w) const { return table().weight_bytes(self(), w); }
    const pb_ops* ops() const { return &inner_.ops(); }
    void* queue() const { return table().queue ? table().queue(self()) : nullptr; }
    void begin_step() { inner_.check(table().begin_step(self())); }
    void end_step() { inner_.check(table().end_step(self())); }

  private:
    const pb_device& table() const { return inner_.table(); }
    void* self() const { return inner_.self(); }

    std::string name_;
    InnerDevice inner_;
};

}  // namespace patchbay
