// All of a swap that is done beside the steps: the plugin is found, probed with its settings, and constructed.
#pragma once
#include <memory>
#include <string>

#include "engine/swap/swap_slot.hpp"
#include "host/swap.hpp"

namespace patchbay::config {
struct PluginChoice;
}

namespace patchbay::host {
class Prober;
class Registry;
}

namespace patchbay::engine {

class SwapPort;

struct CandidateInputs {
    const config::PluginChoice& choice;
    const host::Registry& registry;
    host::Prober& prober;
    const host::Services& services;
    uint64_t transaction = 0; // as host::SwapRecord::transaction
};

struct Constructed {
    std::unique_ptr<host::Component> made; // null: not, in a phase and for a reason
    std::string phase;
    Failure why;
    explicit operator bool() const { return made != nullptr; }
};

// `to` gets what is known of the plugin, but its name. [any thread, beside steps]
Constructed find_and_construct(SwapPort&, const CandidateInputs&, host::Identity& to);
// Ready to be posted, or refused in the phase find, probe or create. Likewise.
std::shared_ptr<host::Swap> prepare_swap(SwapPort&, SwapSlot, const CandidateInputs&);

}  // namespace patchbay::engine
