// The device `byte_count`: computes on another device, and counts the bytes of the tensors and weights of its ops.
// The example of docs/devices.md.
#include <string>

#include "patchbay/sdk/forwarding_device.hpp"
#include "patchbay/sdk/op_list.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace {

class ByteCount : public patchbay::ForwardingDevice { // memory, weights and copies are the inner device's
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::text("inner", "cpu", "the device that computes, with its default settings"),
    };

    explicit ByteCount(const patchbay::Context& context)
        : ForwardingDevice(context, context.get<std::string>("inner")), metrics_(context.host()) {
        const pb_ops& ops = *ForwardingDevice::ops();
        ops_.struct_size = sizeof ops_;
        ops_.ctx = this;
#define PASS_ON(op) pass_on<&pb_ops::op>(ops);
        PB_EACH_LOCAL_OP(PASS_ON)
#undef PASS_ON
    }
    ByteCount(const ByteCount&) = delete; // ops_ points to this

    const pb_ops* ops() const { return &ops_; }
    void begin_step() {
        tensor_bytes_ = weight_bytes_ = 0;
        ForwardingDevice::begin_step();
    }
    void end_step() {
        metrics_.add("tensor_bytes", tensor_bytes_);
        metrics_.add("weight_bytes", weight_bytes_);
        ForwardingDevice::end_step();
    }

  private:
    // An op that the inner device has: its arguments are counted, then handed on.
    template <auto kOp, class... Args>
    static void call(void* ctx, Args... args) {
        auto& device = *static_cast<ByteCount*>(ctx);
        (device.count(args), ...);
        const pb_ops& inner = *device.ForwardingDevice::ops();
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

    patchbay::Metrics metrics_;
    pb_ops ops_{};
    double tensor_bytes_ = 0, weight_bytes_ = 0; // of the step
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::device<ByteCount>({.name = "byte_count",
                                             .version = "1.0.0",
                                             .summary = "another device, and the bytes that its ops are given"}))
