// What a scheduler wants a step to be.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/placement/preemption.hpp"

namespace patchbay::engine {

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
