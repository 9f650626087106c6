#include "conformance/lent_ops.hpp"

#include "patchbay/sdk/op_list.hpp"

namespace patchbay::conformance {
namespace {

template <class T>
T lent(LentMemory&, T value) { // numbers, and what lives as long as the component
    return value;
}
template <class T>
const T* lent_struct(LentMemory& memory, const T* value) {
    return value ? memory.lend(*value) : nullptr;
}
template <>
const pb_tensor* lent(LentMemory& memory, const pb_tensor* t) {
    return lent_struct(memory, t);
}
template <>
const pb_scan* lent(LentMemory& memory, const pb_scan* s) {
    return lent_struct(memory, s);
}
template <>
const pb_state* lent(LentMemory& memory, const pb_state* s) {
    return lent_struct(memory, s);
}

}  // namespace

template <auto Op>
auto LentOps::lending() {
    return []<class... Args>(void (*pb_ops::*)(void*, Args...)) -> void (*)(void*, Args...) {
        return [](void* ctx, Args... args) {
            auto& self = *static_cast<LentOps*>(ctx);
            (self.real_.*Op)(self.real_.ctx, lent<Args>(self.memory_, args)...);
            self.intact_ &= self.memory_.end_call();
        };
    }(Op);
}

LentOps::LentOps(const pb_ops& real) : real_(real) {
    ops_.struct_size = sizeof ops_;
    ops_.ctx = this;
#define PB_LEND(op) \
    if (real.op) ops_.op = lending<&pb_ops::op>();
    PB_EACH_OP(PB_LEND)
#undef PB_LEND
}

}  // namespace patchbay::conformance
