// What is in the slots of a running engine, and how that is changed: by swaps, by hot parameters, and by another engine
// that takes the place of this one.
#pragma once
#include <memory>
#include <vector>

#include "engine/swap/swap_control.hpp"
#include "engine/swap/swap_request.hpp"
#include "engine/swap/swap_slot.hpp"
#include "host/component.hpp"
#include "host/swap.hpp"

namespace patchbay::engine {

struct StepContext;
class SwapJournal;

class EngineControl {
  public:
    struct Parts {
        SwapControl::Parts swaps; // with the configuration that the engine was made of
        StepContext& context;
        SwapJournal& journal;
    };
    explicit EngineControl(const Parts& parts) : p_(parts), swaps_(parts.swaps) {}

    // Puts another component into a slot between two steps, by docs/hot-swap.md. What can be done beside the steps is
    // done before it returns; the rest, and what came of it, is in the swap. [any thread but the one that steps; that
    // one too, between steps]
    std::shared_ptr<host::Swap> swap(const SwapRequest&);
    // The same for several slots, which succeed or fail together, as SwapControl::prepare_together().
    std::vector<std::shared_ptr<host::Swap>> swap_together(const std::vector<SwapRequest>&);
    SwapControl& swaps() { return swaps_; } // which prepares and posts them one after the other

    // ---- between steps [the thread that steps]
    // The engine's as it was made, but for what is in its slots now.
    config::EngineConfig configuration() const;
    // Hot parameters of the component in a slot get other values, all of them or none; what is not given stays.
    Result<> configure(SwapSlot, const host::Settings& changes);
    host::Settings settings(SwapSlot) const; // of the component in a slot, defaults included; none: it is empty

    // Before its first step, of an engine that goes on in place of another one: it numbers its steps on from there, and
    // the first one reports the swap of the model that it is.
    void take_over(uint64_t step, host::SwapRecord);
    // Of another engine, whose place and components this one takes: swaps on probation are committed, those in line
    // refused. Reported with this engine's next step; the model's before take_over(), which comes after this. [between
    // steps of both]
    void end_swaps_of(EngineControl& other);

  private:
    host::Slot& slot(SwapSlot which) const { return p_.swaps.ports[static_cast<size_t>(which)]->slot(); }

    const Parts p_;
    SwapControl swaps_;
};

}  // namespace patchbay::engine
