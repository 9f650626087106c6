// patchbay/sdk/checked_ops.hpp - a device's ops table from its kernels. Each op checks its arguments (op_checks.hpp)
// and calls the kernel of its name; what either throws becomes the step's fault, after which the step's ops do nothing.
//
// Kernels: a class with a static function for each op that it has: linear(Device&, out, x, w), the op's arguments with
// the device in place of ctx. Device: OpChecks op_checks() const; bool faulty() const; void set_fault(std::string)
// noexcept. Optional: void before_op(const char* op) and after_op(const char* op) noexcept, which may set the fault.
#pragma once
#include <exception>
#include <string>

#include "patchbay/abi/device.h"
#include "patchbay/sdk/op_checks.hpp"
#include "patchbay/sdk/op_list.hpp"

namespace patchbay {
namespace detail {

template <class Device, class F>
void run_op(Device& device, const char* op, F&& f) noexcept {
    if (device.faulty()) return;
    if constexpr (requires { device.before_op(op); }) {
        device.before_op(op);
        if (device.faulty()) return;
    }
    try {
        f();
        if constexpr (requires { device.after_op(op); }) device.after_op(op);
    } catch (const Mismatch& mismatch) {
        device.set_fault(std::string(op) + ": " + mismatch.text);
    } catch (const std::exception& error) {
        device.set_fault(std::string(op) + ": " + error.what());
    }
}

}  // namespace detail

// Sets the ops that Kernels has, in a table whose ctx is a Device.
template <class Device, class Kernels>
void set_checked_ops(pb_ops& ops) {
#define PB_SET_CHECKED_OP(op)                                                                     \
    if constexpr (requires { &Kernels::op; })                                                     \
        ops.op = []<class... Args>(void (*)(void*, Args...)) -> void (*)(void*, Args...) {        \
            return [](void* ctx, Args... args) {                                                  \
                auto& device = *static_cast<Device*>(ctx);                                        \
                detail::run_op(device, #op, [&] {                                                 \
                    device.op_checks().op(args...);                                               \
                    Kernels::op(device, args...);                                                 \
                });                                                                               \
            };                                                                                    \
        }(ops.op);
    PB_EACH_OP(PB_SET_CHECKED_OP)
#undef PB_SET_CHECKED_OP
}

template <class Device, class Kernels>
pb_ops checked_ops(Device& device) {
    pb_ops out{};
    out.struct_size = sizeof out;
    out.ctx = &device;
    set_checked_ops<Device, Kernels>(out);
    return out;
}

}  // namespace patchbay
