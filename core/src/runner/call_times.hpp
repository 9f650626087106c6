// How long a forward pass was in each plugin's calls, by the engine's clock. The model's includes the ops and the
// attention that it calls.
#pragma once
#include <cstdint>

namespace patchbay::runner {

struct CallTimes { // nanoseconds
    uint64_t model_forward = 0;
    uint64_t attention_plan = 0, attention_append = 0, attention_run = 0;
    uint64_t device_begin = 0, device_launch = 0, device_end = 0; // launch: of a graph, in place of the model's forward
    uint64_t sampler = 0; // of one on the device: to plan and start its work
};

}  // namespace patchbay::runner
