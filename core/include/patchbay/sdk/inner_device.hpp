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
        : devices_(service<pb_devices>(context.host(), PB_SERVICE_DEVICES, PB_DEVICES_REVISION)) {
        if (!devices_) throw Error(PB_UNAVAILABLE, "the host offers no inner devices");
        pb_str why{};
        const pb_device* table = nullptr;
        const pb_status status = devices_->open(devices_->ctx, name.c_str(), settings.data(),
                                                static_cast<uint32_t>(settings.size()), &table, &self_, &why);
        if (status != PB_OK) throw Error(status, "device '" + name + "': " + std::string(view(why)));
        table_ = widened<pb_device>(table, table->struct_size);
    }

    const pb_device& table() const { return table_; } // as this plugin knows it, as are its ops
    void* self() const { return self_; }
    const pb_ops& ops() const {
        if (!ops_) {
            const pb_ops* const given = table_.ops(self_);
            ops_ = widened<pb_ops>(given, given->struct_size);
        }
        return *ops_;
    }

    // Passes a failure on: `inner.check(inner.table().begin_step(inner.self()))`.
    void check(pb_status status) const {
        if (status != PB_OK) throw Error(status, std::string(view(devices_->why(devices_->ctx, self_))));
    }

  private:
    const std::optional<pb_devices> devices_;
    pb_device table_{};
    void* self_ = nullptr;
    mutable std::optional<pb_ops> ops_;
};

}  // namespace patchbay
