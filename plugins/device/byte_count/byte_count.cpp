// The device `byte_count`: computes on another device, and counts the bytes of the tensors and weights of its ops.
// The example of docs/devices.md.
#include <string>

#include "patchbay/sdk/device.hpp"
#include "patchbay/sdk/inner_device.hpp"
#include "patchbay/sdk/op_list.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace {

class ByteCount {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::text("inner", "cpu", "the device that computes, with its default settings"),
    };

    explicit ByteCount(const patchbay::Context& context)
        : name_(context.get<std::string>("inner")), inner_(context, name_), metrics_(context.host()) {
        const pb_ops& ops = inner_.ops();
        ops_.struct_size = sizeof ops_;
        ops_.ctx = this;
#define PASS_ON(op) pass_on<&pb_ops::op>(ops);
        PB_EACH_LOCAL_OP(PASS_ON)
#undef PASS_ON
    }
    ByteCount(const ByteCount&) = delete; // ops_ points to this

    pb_device_info info() const {
        pb_device_info out = patchbay::sized<pb_device_info>();
        inner_.check(table().info(self(), &out));
        if (!out.computes) throw patchbay::Error(PB_UNSUPPORTED, "an inner device that computes nothing");
        if (!out.compatible_with[0]) name_.copy(out.compatible_with, sizeof out.compatible_with - 1);
        return out;
    }

    // Memory, weights and steps are the inner device's.
    void* alloc(uint64_t bytes) {
        void* out = nullptr;
        inner_.check(table().alloc(self(), bytes, &out));
        return out;
    }
    void free(void* memory) { table().free(self(), memory); }
    void to_device(void* to, const void* from, uint64_t bytes) {
        inner_.check(table().to_device(self(), to, from, bytes));
    }
    void to_host(void* to, const void* from, uint64_t bytes) { inner_.check(table().to_host(self(), to, from, bytes)); }
    void copy_page(void* to, const void* from, uint64_t bytes) {
        inner_.check(table().copy_page(self(), to, from, bytes));
    }
    pb_weight* prepare(const pb_weight_source& source) {
        pb_weight* out = nullptr;
        inner_.check(table().prepare(self(), &source, &out));
        return out;
    }
    void release(pb_weight* w) { table().release(self(), w); }
    uint64_t weight_bytes(const pb_weight* w) const { return table().weight_bytes(self(), w); }
    const pb_ops* ops() const { return &ops_; }
    void* queue() const { return table().queue ? table().queue(self()) : nullptr; }
    void begin_step() {
        tensor_bytes_ = weight_bytes_ = 0;
        inner_.check(table().begin_step(self()));
    }
    void end_step() {
        metrics_.add("tensor_bytes", tensor_bytes_);
        metrics_.add("weight_bytes", weight_bytes_);
        inner_.check(table().end_step(self()));
    }

  private:
    const pb_device& table() const { return inner_.table(); }
    void* self() const { return inner_.self(); }

    // An op that the inner device has: its arguments are counted, then handed on.
    template <auto kOp, class... Args>
    static void call(void* ctx, Args... args) {
        auto& device = *static_cast<ByteCount*>(ctx);
        (device.count(args), ...);
        const pb_ops& inner = device.inner_.ops();
        (inner.*kOp)(inner.ctx, args...);
    }
    template <auto kOp, class... Args>
    static auto caller(void (*)(void*, Args...)) { // deduces the arguments' types
        return &call<kOp, Args...>;
    }
    template <auto kOp>
    void pass_on(const pb_ops& inner) {
        ops_.*kOp = inner.*kOp ? caller<kOp>(inner.*kOp) : nullptr;
    }

    void count(const pb_tensor* t) {
        tensor_bytes_ += static_cast<double>(patchbay::elements(*t) * patchbay::dtype_bytes(t->dtype));
    }
    void count(const pb_weight* w) { // null: an optional weight that is absent
        if (w) weight_bytes_ += static_cast<double>(weight_bytes(w));
    }
    template <class Other>
    void count(Other) {} // numbers; and lists of experts, of which only some are read

    std::string name_;
    patchbay::InnerDevice inner_;
    patchbay::Metrics metrics_;
    pb_ops ops_{};
    double tensor_bytes_ = 0, weight_bytes_ = 0; // of the step
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::device<ByteCount>({.name = "byte_count",
                                             .version = "1.0.0",
                                             .summary = "another device, and the bytes that its ops are given"}))
