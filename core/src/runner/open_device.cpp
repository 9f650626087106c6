#include "runner/open_device.hpp"

#include "host/op_names.hpp"

namespace patchbay::runner {

void OpenDevice::read_ops() {
    const pb_ops* const table = plugin.call<&pb_device::ops>();
    ops = widened<pb_ops>(table, table->struct_size);
}

Result<> OpenDevice::check_needs(const host::Component& model) const {
    for (const char* const* need = model.table<pb_model>()->needs; need && *need; ++need)
        if (!host::has_op(ops, *need))
            return fail(StatusCode::kUnsupported,
                        "model '" + std::string(model.type().name) + "' needs the op '" + *need +
                        "', which the device '" + name + "' does not have");
    return {};
}

}  // namespace patchbay::runner
