// A configuration of all of an engine but its model. Used by scenarios, benches of what the host costs, and tests.
#pragma once
#include <cstdint>

namespace patchbay::config {
struct EngineConfig;
}

namespace patchbay::scenario {

// A tiny model, on a device `sim` that takes no time. Of `c` the model, the device and the threads change.
void leave_out_model(config::EngineConfig& c, uint32_t vocab_size);

}  // namespace patchbay::scenario
