// What a caller of the engine gives for a swap.
#pragma once
#include "config/engine_config.hpp"
#include "engine/swap/swap_slot.hpp"
#include "runner/between_steps.hpp"

namespace patchbay::host {
class Prober;
class Registry;
}

namespace patchbay::engine {

struct SwapRequest {
    SwapSlot slot;
    config::PluginChoice choice; // of the slot model: `plugin` is the folder or file of its weights
    const host::Registry& registry;
    host::Prober& prober;
    // Of the slot model: runs what the device has to do for the weights between two steps. Empty: the swap is ordered
    // between steps.
    runner::BetweenSteps between_steps{};
};

}  // namespace patchbay::engine
