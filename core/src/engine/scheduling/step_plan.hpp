// What a scheduler wants a step to be.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/request/ids.hpp"
#include "patchbay/abi/scheduler.h"

namespace patchbay::engine {

struct Sequence;

struct StepPlan {
    struct Item {
        Sequence* sequence;
        uint32_t tokens;
    };
    struct Preemption {
        Sequence* sequence;
        RequestId id; // of it, for when it is gone
        pb_preemption how;
    };
    std::vector<Item> items;
    std::vector<Preemption> preemptions;
};

}  // namespace patchbay::engine
