// The devices that another one, made by the registry, stands before: the service patchbay.devices/1.
#pragma once
#include <list>
#include <string>

#include "host/component.hpp"

namespace patchbay::host {

class Registry;

class InnerDevices {
  public:
    // The registry is asked while the outer device is made, and not later. The outer device must go first.
    InnerDevices(const Registry& registry, const Services& services);
    InnerDevices(const InnerDevices&) = delete;
    InnerDevices& operator=(const InnerDevices&) = delete;

    const pb_devices& service() const { return service_; }

  private:
    pb_status open(const char* name, const pb_setting* settings, uint32_t count, const pb_device** table, void** self,
                   pb_str* why);
    void close(void* self);
    pb_str why(void* self);

    const Registry* registry_;
    Services services_; // theirs: of this one, only its refusal
    std::list<Device> devices_;
    std::string text_; // that a pb_str shows
    pb_devices service_{};
};

}  // namespace patchbay::host
