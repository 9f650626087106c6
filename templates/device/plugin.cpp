// @name@ - a device: another device that computes, with less memory. To see what an engine does where KV is scarce.
#include <algorithm>
#include <map>

#include "patchbay/sdk/forwarding_device.hpp"

namespace {

class @Class@ : public patchbay::ForwardingDevice { // ops and other calls not below: the inner device's
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::text("inner", "cpu", "the device that computes, with its default settings"),
        patchbay::param::integer("memory_mib", "1048576", 1, 1e9, "MiB", "memory for weights and KV, at most"),
    };

    explicit @Class@(const patchbay::Context& c)
        : ForwardingDevice(c, c.get<std::string>("inner")), memory_(c.get<uint64_t>("memory_mib") << 20) {}

    pb_device_info info() const {
        pb_device_info out = ForwardingDevice::info();
        for (uint64_t* const bytes : {&out.memory_total, &out.memory_free}) *bytes = std::min(*bytes, memory_);
        return out;
    }
    void* alloc(uint64_t bytes) { // for KV pages, workspace and plans
        void* const out = ForwardingDevice::alloc(bytes);
        used_ += sizes_[out] = bytes;
        if (used_ > memory_) free(out), refuse(bytes);
        return out;
    }
    void free(void* memory) {
        ForwardingDevice::free(memory);
        used_ -= sizes_[memory];
        sizes_.erase(memory);
    }
    pb_weight* prepare(const pb_weight_source& source) { // a weight, as the device wants it
        pb_weight* const out = ForwardingDevice::prepare(source);
        const uint64_t bytes = weight_bytes(out);
        used_ += bytes;
        if (used_ > memory_) release(out), refuse(bytes);
        return out;
    }
    void release(pb_weight* w) {
        used_ -= weight_bytes(w);
        ForwardingDevice::release(w);
    }

  private:
    void refuse(uint64_t bytes) const {
        throw patchbay::Error(PB_EXHAUSTED, std::to_string(bytes) + " bytes more than there are");
    }

    uint64_t memory_, used_ = 0; // bytes
    std::map<void*, uint64_t> sizes_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::device<@Class@>(
    {.name = "@name@", .version = "0.1.0", .summary = "another device, with less memory"}))
