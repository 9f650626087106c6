// Swaps as a caller orders them: prepared beside the steps, then put in line for a boundary between two steps. By
// docs/hot-swap.md.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/swap/swap_port.hpp"
#include "engine/swap/swap_request.hpp"
#include "engine/swap/swap_slot.hpp"
#include "host/component.hpp"
#include "host/swap.hpp"

namespace patchbay::engine {

class ModelSwaps;
class Transactions;

// [any thread but the one that steps; that one too, between steps]
class SwapControl {
  public:
    struct Parts {
        const config::EngineConfig& config;
        const host::Services& services; // for components to come
        std::array<SwapPort*, kSwapSlots.size()> ports; // by slot
        ModelSwaps& model_swaps;
        Transactions& transactions;
    };
    explicit SwapControl(const Parts& parts) : p_(parts) {}

    // Probes and constructs; then gets in line for the first boundary not before a time.
    std::shared_ptr<host::Swap> prepare(const SwapRequest& request) { return prepare(request, 0); }
    void post(const std::shared_ptr<host::Swap>&, uint64_t not_before_ns = 0);
    // The same for several slots, each named once, which succeed or fail together: at one boundary, with one outcome.
    // All are prepared before any is posted; where one is refused, all are. In the order of the requests.
    std::vector<std::shared_ptr<host::Swap>> prepare_together(const std::vector<SwapRequest>&);
    void post_together(const std::vector<std::shared_ptr<host::Swap>>&, uint64_t not_before_ns = 0);

    // Whether only a new engine can run the checkpoint that a swap of the slot model names: its layers keep other KV,
    // or its vocabulary is another one. False where it cannot be said, which prepare() then explains.
    bool needs_new_engine(const SwapRequest&);
    // Records one that was refused before it came to the engine.
    std::shared_ptr<host::Swap> refuse(const host::Identity& to, const std::string& phase, const Failure& why);

  private:
    SwapPort& port(SwapSlot slot) { return *p_.ports[static_cast<size_t>(slot)]; }
    std::shared_ptr<host::Swap> prepare(const SwapRequest&, uint64_t transaction);

    const Parts p_;
};

}  // namespace patchbay::engine
