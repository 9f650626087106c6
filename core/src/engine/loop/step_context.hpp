// What all parts know of the step under way; between steps, of the latest one.
#pragma once
#include <cstdint>

#include "engine/step_report.hpp"

namespace patchbay::engine {

struct StepContext {
    uint64_t step = 0;   // its number, from 1
    uint64_t now_ns = 0; // when its phase under way began, on the engine's clock
    StepReport report;
};

}  // namespace patchbay::engine
