#include "host/inner_devices.hpp"

#include <exception>

#include "host/registry.hpp"

namespace patchbay::host {

namespace {

// What the inner devices get, so that none can stand before itself.
constexpr pb_devices kNone{sizeof(pb_devices), PB_DEVICES_REVISION, nullptr,
                           [](void*, const char*, const pb_setting*, uint32_t, const pb_device**, void**, pb_str* why) {
                               constexpr std::string_view kWhy = "it is an inner device itself";
                               *why = {kWhy.data(), kWhy.size()};
                               return pb_status{PB_UNSUPPORTED};
                           },
                           [](void*, void*) {}, [](void*, void*) { return pb_str{}; }};

// A device that fails is no device that the machine lacks: only the latter leaves a plugin sound. One that is not
// installed is lacking, too.
pb_status status_of(StatusCode code) {
    switch (code) {
        case StatusCode::kInvalid: return PB_INVALID;
        case StatusCode::kUnsupported: return PB_UNSUPPORTED;
        case StatusCode::kExhausted: return PB_EXHAUSTED;
        case StatusCode::kNotFound:
        case StatusCode::kUnavailable: return PB_UNAVAILABLE;
        default: return PB_FAILED;
    }
}

}  // namespace

InnerDevices::InnerDevices(const Registry& registry, const Services& services)
    : registry_(&registry), services_(services) {
    services_.devices = &kNone;
    service_ = {sizeof(pb_devices), PB_DEVICES_REVISION, this,
                [](void* ctx, const char* name, const pb_setting* settings, uint32_t count, const pb_device** table,
                   void** self, pb_str* why) {
                    return static_cast<InnerDevices*>(ctx)->open(name, settings, count, table, self, why);
                },
                [](void* ctx, void* self) { static_cast<InnerDevices*>(ctx)->close(self); },
                [](void* ctx, void* self) { return static_cast<InnerDevices*>(ctx)->why(self); }};
}

// Called out of a plugin, through which nothing may be thrown.
pb_status InnerDevices::open(const char* name, const pb_setting* settings, uint32_t count, const pb_device** table,
                             void** self, pb_str* why) try {
    Settings chosen;
    for (uint32_t i = 0; i < count; ++i)
        chosen[std::string(settings[i].key.data, settings[i].key.size)] =
            std::string(settings[i].value.data, settings[i].value.size);
    auto device = registry_->device(name, chosen, services_);
    if (!device) {
        text_ = device.error();
        *why = {text_.data(), text_.size()};
        return status_of(device.code());
    }
    devices_.push_back(*std::move(device));
    *table = devices_.back().table;
    *self = devices_.back().self();
    return PB_OK;
} catch (const std::exception& error) {
    text_ = error.what();
    *why = {text_.data(), text_.size()};
    return PB_FAILED;
}

void InnerDevices::close(void* self) {
    devices_.remove_if([&](const Device& d) { return d.self() == self; });
}

pb_str InnerDevices::why(void* self) {
    text_.clear();
    for (const Device& d : devices_)
        if (d.self() == self) text_ = d.component->why();
    return {text_.data(), text_.size()};
}

}  // namespace patchbay::host
