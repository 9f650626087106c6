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

    explicit @Class@(const patchbay::Context& context)
        : ForwardingDevice(context, context.get<std::string>("inner")),
          memory_(context.get<uint64_t>("memory_mib") << 20) {}

    pb_device_info info() const {
        pb_device_info out = ForwardingDevice::info();
        out.memory_total = std::min(out.memory_total, memory_);
        out.memory_free = std::min(out.memory_free, memory_);
        return out;
    }
    void* alloc(uint64_t bytes) { // for KV pages, workspace and plans
        take(bytes);
        void* const out = ForwardingDevice::alloc(bytes);
        sizes_[out] = bytes;
        return out;
    }
    void free(void* memory) {
        ForwardingDevice::free(memory);
        used_ -= sizes_[memory];
        sizes_.erase(memory);
    }
    pb_weight* prepare(const pb_weight_source& source) { // a weight, as the device wants it
        pb_weight* const out = ForwardingDevice::prepare(source);
        try {
            take(weight_bytes(out));
        } catch (...) {
            ForwardingDevice::release(out);
            throw;
        }
        return out;
    }
    void release(pb_weight* w) {
        used_ -= weight_bytes(w);
        ForwardingDevice::release(w);
    }

  private:
    void take(uint64_t bytes) {
        if (bytes > memory_ - used_)
            throw patchbay::Error(PB_EXHAUSTED, std::to_string(bytes) + " bytes more than " + std::to_string(used_) +
                                                    " do not fit into " + std::to_string(memory_));
        used_ += bytes;
    }

    uint64_t memory_, used_ = 0; // bytes
    std::map<void*, uint64_t> sizes_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::device<@Class@>(
    {.name = "@name@", .version = "0.1.0", .summary = "another device, with less memory"}))
