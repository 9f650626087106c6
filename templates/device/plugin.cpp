// @name@ - a device: another device that computes, with less memory. To see what an engine does where KV is scarce.
#include <algorithm>
#include <map>

#include "patchbay/sdk/device.hpp"
#include "patchbay/sdk/inner_device.hpp"

namespace {

class @Class@ {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::text("inner", "cpu", "the device that computes, with its default settings"),
        patchbay::param::integer("memory_mib", "1048576", 1, 1e9, "MiB", "memory for weights and KV, at most"),
    };

    explicit @Class@(const patchbay::Context& context)
        : name_(context.get<std::string>("inner")), memory_(context.get<uint64_t>("memory_mib") << 20),
          inner_(context, name_) {}

    pb_device_info info() const {
        auto out = patchbay::sized<pb_device_info>();
        inner_.check(table().info(self(), &out));
        if (!out.computes) throw patchbay::Error(PB_UNSUPPORTED, "an inner device that computes nothing");
        if (!out.compatible_with[0]) // attention and samplers of the inner device serve this one
            name_.copy(out.compatible_with, sizeof out.compatible_with - 1);
        out.memory_total = std::min(out.memory_total, memory_);
        out.memory_free = std::min(out.memory_free, memory_);
        return out;
    }

    // Memory, weights, ops and steps are the inner device's, within the bound.
    void* alloc(uint64_t bytes) {
        take(bytes);
        void* out = nullptr;
        inner_.check(table().alloc(self(), bytes, &out));
        sizes_[out] = bytes;
        return out;
    }
    void free(void* memory) {
        table().free(self(), memory);
        used_ -= sizes_[memory];
        sizes_.erase(memory);
    }
    void to_device(void* to, const void* from, uint64_t n) { inner_.check(table().to_device(self(), to, from, n)); }
    void to_host(void* to, const void* from, uint64_t n) { inner_.check(table().to_host(self(), to, from, n)); }
    void copy_page(void* to, const void* from, uint64_t n) { inner_.check(table().copy_page(self(), to, from, n)); }
    pb_weight* prepare(const pb_weight_source& source) {
        pb_weight* out = nullptr;
        inner_.check(table().prepare(self(), &source, &out));
        try {
            take(weight_bytes(out));
        } catch (...) {
            table().release(self(), out);
            throw;
        }
        return out;
    }
    void release(pb_weight* w) {
        used_ -= weight_bytes(w);
        table().release(self(), w);
    }
    uint64_t weight_bytes(const pb_weight* w) const { return table().weight_bytes(self(), w); }
    const pb_ops* ops() const { return &inner_.ops(); } // docs/devices.md: how to stand before each op
    void* queue() const { return table().queue ? table().queue(self()) : nullptr; }
    void begin_step() { inner_.check(table().begin_step(self())); }
    void end_step() { inner_.check(table().end_step(self())); }

  private:
    const pb_device& table() const { return inner_.table(); }
    void* self() const { return inner_.self(); }
    void take(uint64_t bytes) {
        if (bytes > memory_ - used_)
            throw patchbay::Error(PB_EXHAUSTED, std::to_string(bytes) + " bytes more than " + std::to_string(used_) +
                                                    " do not fit into " + std::to_string(memory_));
        used_ += bytes;
    }

    std::string name_;
    uint64_t memory_, used_ = 0; // bytes
    patchbay::InnerDevice inner_;
    std::map<void*, uint64_t> sizes_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::device<@Class@>(
    {.name = "@name@", .version = "0.1.0", .summary = "another device, with less memory"}))
