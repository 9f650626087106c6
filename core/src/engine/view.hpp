// What an engine holds, as scenarios and tests look at it.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/request/ids.hpp"
#include "engine/step_report.hpp"
#include "patchbay/abi/scheduler.h"

namespace patchbay::engine {

struct View { // in the records that schedulers are shown
    std::vector<pb_sequence> waiting; // after the queue those that have arrived since the last step
    std::vector<pb_sequence> running; // in order of admission
    std::vector<RequestId> preempted; // by the latest plan
    uint32_t free_pages = 0, cached_pages = 0, total_pages = 0;
    uint32_t free_swap_pages = 0, total_swap_pages = 0;
    StepReport report;                // of the step under way as far as it has come, or of the latest one
};

}  // namespace patchbay::engine
