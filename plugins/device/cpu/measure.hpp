// What the CPU does at best, as `patchbay bench` compares with.
#pragma once
#include <vector>

#include "kernels/cpu.hpp"
#include "patchbay/abi/device.h"
#include "patchbay/plugin.hpp"

namespace patchbay {

std::vector<pb_limit> measured_limits(const kernels::Machine&, const HostClock&); // throws Error

}  // namespace patchbay
