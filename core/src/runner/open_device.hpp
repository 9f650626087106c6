// A device as a ModelRunner uses it: the plugin, what it says of itself, and its ops. A target and its draft share one.
#pragma once
#include <string>
#include <utility>

#include "base/result.hpp"
#include "host/component.hpp"

namespace patchbay::runner {

struct OpenDevice {
    OpenDevice(host::Device device, std::string its_name) : plugin(std::move(device)), name(std::move(its_name)) {}

    Result<> read_info() { return plugin.checked<&pb_device::info>(&info); }
    void read_ops(); // once ranks are connected

    bool computes() const { return info.computes != 0; }
    bool has_own_memory() const { return info.computes && !info.host_memory; }
    bool has_graphs() const { return plugin.extension<pb_device_graphs>() != nullptr; }
    int32_t of_tensors() const { return info.host_memory ? 0 : 1; } // as pb_tensor.device
    Result<> check_needs(const host::Component& model) const; // that it has the ops which the model calls

    const host::Device plugin;
    const std::string name; // the plugin's, as configured
    pb_device_info info = sized<pb_device_info>();
    pb_ops ops{};           // as this host knows them: what the table lacks is null
};

}  // namespace patchbay::runner
