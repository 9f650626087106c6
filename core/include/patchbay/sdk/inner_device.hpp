// patchbay/sdk/inner_device.hpp - the device that another one stands before, to measure it or to change what it is
// asked. See docs/devices.md.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "patchbay/abi/device.h"
#include "patchbay/plugin.hpp"

namespace patchbay {

class InnerDevice {
  public:
    // In a device's constructor only. Throws Error where there is no such device, or the host offers none.
    InnerDevice(const Context& context, const std::string& name, const std::vector<pb_setting>& settings = {})
        : devices_(static_cast<const pb_devices*>(context.host().service(context.host().ctx, PB_SERVICE_DEVICES))) {
        if (!devices_) throw Error(PB_UNAVAILABLE, "the host offers no inner devices");
        pb_str why{};
        const pb_status status = devices_->open(devices_->ctx, name.c_str(), settings.data(),
                                                static_cast<uint32_t>(settings.size()), &table_, &self_, &why);
        if (status != PB_OK) throw Error(status, "device '" + name + "': " + std::string(view(why)));
    }

    const pb_device& table() const { return *table_; }
    void* self() const { return self_; }
    const pb_ops& ops() const { return *table_->ops(self_); }

    // Passes a failure on: `inner.check(inner.table().begin_step(inner.self()))`.
    void check(pb_status status) const {
        if (status != PB_OK) throw Error(status, std::string(view(devices_->why(devices_->ctx, self_))));
    }

  private:
    const pb_devices* devices_;
    const pb_device* table_ = nullptr;
    void* self_ = nullptr;
};

}  // namespace patchbay
