// For engines on a device that computes nothing: the clock that they run by, and the tokens that they give.
#pragma once
#include <memory>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "execution/synthetic_tokens.hpp"

namespace patchbay::config {
struct EngineConfig;
}

namespace patchbay::host {
class Registry;
}

namespace patchbay::engine {

// Virtual where the device computes nothing, so that a run takes no longer than the host's own work; else real.
Result<std::unique_ptr<Clock>> clock_for(const config::EngineConfig&, const host::Registry&);

using execution::synthetic_token;

}  // namespace patchbay::engine
