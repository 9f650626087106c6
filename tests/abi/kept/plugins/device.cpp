// kept_sdk - stands before the device cpu and passes every call on, over the SDK.
#include "grown.hpp"
#include "patchbay/sdk/device.hpp"
#include "patchbay/sdk/inner_device.hpp"
#include "patchbay/sdk/op_list.hpp"

namespace {

class Kept {
  public:
    explicit Kept(const patchbay::Context& context) : inner_(context, "cpu") {
        kept::expect_zero_growth(table(), "pb_device");
    }
    Kept(const Kept&) = delete; // ops_ points here

    pb_device_info info() const {
        auto out = patchbay::sized<pb_device_info>();
        inner_.check(table().info(self(), &out));
        kept::expect_zero_growth(out, "pb_device_info");
        std::string("cpu").copy(out.compatible_with, sizeof out.compatible_with - 1);
        return out;
    }
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
        kept::expect_zero_growth(source, "pb_weight_source");
        pb_weight* out = nullptr;
        inner_.check(table().prepare(self(), &source, &out));
        return out;
    }
    void release(pb_weight* w) { table().release(self(), w); }
    uint64_t weight_bytes(const pb_weight* w) const { return table().weight_bytes(self(), w); }
    const pb_ops* ops() {
        kept::expect_zero_growth(inner_.ops(), "pb_ops");
        ops_.struct_size = sizeof ops_;
        ops_.ctx = this;
#define PASS_ON(op) pass_on<&pb_ops::op>(inner_.ops());
        PB_EACH_LOCAL_OP(PASS_ON)
#undef PASS_ON
        return &ops_;
    }
    void begin_step() { inner_.check(table().begin_step(self())); }
    void end_step() { inner_.check(table().end_step(self())); }

  private:
    const pb_device& table() const { return inner_.table(); }
    void* self() const { return inner_.self(); }

    template <auto kOp, class... Args>
    static void call(void* ctx, Args... args) {
        const pb_ops& inner = static_cast<Kept*>(ctx)->inner_.ops();
        (inner.*kOp)(inner.ctx, args...);
    }
    template <auto kOp, class... Args>
    static auto caller(void (*)(void*, Args...)) { // finds the arguments' types
        return &call<kOp, Args...>;
    }
    template <auto kOp>
    void pass_on(const pb_ops& inner) {
        ops_.*kOp = inner.*kOp ? caller<kOp>(inner.*kOp) : nullptr;
    }

    patchbay::InnerDevice inner_;
    pb_ops ops_{};
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::device<Kept>(
    {.name = "kept_sdk", .version = "1.0.0", .summary = "passes every call on to the device cpu"}))
