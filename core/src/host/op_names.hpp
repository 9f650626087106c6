// The ops that a device may leave out, by the names that a model asks for them. For the runner, and the device's
// checks.
#pragma once
#include <string_view>

#include "patchbay/abi/device.h"

namespace patchbay::host {

// Whether the device has an op; false also for a name that no version of the table knows.
bool has_op(const pb_ops&, std::string_view name);

}  // namespace patchbay::host
