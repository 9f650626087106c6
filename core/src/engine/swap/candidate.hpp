// Everything about a swap that is done beside the steps: the plugin is found, probed with its settings, and constructed.
#pragma once
#include <memory>

#include "config/engine_config.hpp"
#include "engine/swap/swap_port.hpp"
#include "engine/swap/swap_slot.hpp"
#include "host/prober.hpp"
#include "host/registry.hpp"

namespace patchbay::engine {

struct CandidateInputs {
    const config::PluginChoice& choice;
    const host::Registry& registry;
    host::Prober& prober;
    const host::Services& services;
};

// Ready to be posted, or refused in the phase find, probe or create. [any thread, beside steps]
std::shared_ptr<host::Swap> prepare_swap(SwapPort&, SwapSlot, const CandidateInputs&);

}  // namespace patchbay::engine
