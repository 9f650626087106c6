// What the GPU does at best, as `patchbay bench` compares with. For the CUDA device.
#pragma once
#include <vector>

#include "gpu.hpp"
#include "patchbay/abi/device.h"
#include "patchbay/plugin.hpp"
#include "products.hpp"
#include "staging.hpp"

namespace patchbay {

std::vector<pb_limit> measured_limits(Gpu&, Staging&, Products&, const HostClock&); // throws Error

}  // namespace patchbay
