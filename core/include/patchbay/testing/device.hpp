// patchbay/testing/device.hpp - a device, alone or before another one. Its ops are compared with their definitions by
// `patchbay plugin test`.
#pragma once
#include <memory>

#include "patchbay/sdk/device.hpp"
#include "patchbay/testing/component.hpp"

namespace patchbay::testing {

class Device {
  public:
    explicit Device(const Plugin& plugin, const Settings& settings = {}, std::string_view name = {})
        : component(plugin, PB_DEVICE, host, settings, name) {}
    // One that stands before `inner`, which it opens under inner_name. `inner` outlives it.
    Device(const Plugin& plugin, const std::string& inner_name, Device& inner, const Settings& settings = {},
           std::string_view name = {})
        : offered_(offer(host, inner_name, inner)), component(plugin, PB_DEVICE, host, settings, name) {}

    pb_device_info info() const {
        auto out = sized<pb_device_info>();
        component.check(table().info(component.self(), &out));
        return out;
    }
    // Freed with the pointer. Throws Error where there is not so much.
    std::shared_ptr<void> alloc(uint64_t bytes) const {
        void* out = nullptr;
        component.check(table().alloc(component.self(), bytes, &out));
        return {out, [this](void* memory) { table().free(component.self(), memory); }};
    }
    const pb_device& table() const { return component.table<pb_device>(); }

    Host host;

  private:
    static bool offer(Host& host, const std::string& name, Device& inner) {
        host.offer_device(name, &inner.table(), inner.component.self());
        return true;
    }
    bool offered_ = false; // before the component is made

  public:
    Component component; // goes first
};

}  // namespace patchbay::testing
