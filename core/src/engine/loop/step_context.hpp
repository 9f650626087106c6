// What all parts know of the step under way, or between steps of the latest one; and what they note for its report.
#pragma once
#include <cstdint>

#include "engine/step_report.hpp"

namespace patchbay::engine {

struct StepContext {
    uint64_t step = 0;   // its number, from 1
    uint64_t now_ns = 0; // when its phase under way began, on the engine's clock
    StepReport report;   // of the step under way; between steps, what is noted then for the next one
    StepReport latest;   // as it was handed out

    const StepReport& shown() const { return report.step > 0 ? report : latest; }
};

}  // namespace patchbay::engine
