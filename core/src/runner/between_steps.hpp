// Work of another thread that calls the device.
#pragma once
#include <functional>

namespace patchbay::runner {

// Runs something between two steps, where the device may be called. False: it did not run, there are no more steps.
using BetweenSteps = std::function<bool(const std::function<void()>&)>;

}  // namespace patchbay::runner
