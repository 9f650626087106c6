// A slot of the engine, as its swaps see it: which components fit, what a new one has to know, and how long its calls
// took. What the slot itself does is in host/slot.hpp.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "host/schema.hpp"
#include "patchbay/abi.h"

namespace patchbay::host {
class Component;
class Library;
class Slot;
struct Services;
}

namespace patchbay::engine {

class SwapPort {
  public:
    virtual ~SwapPort() = default;
    virtual host::Slot& slot() = 0;

    // ---- any thread, beside steps ----
    virtual Result<> takes_swaps() const { return {}; } // a failure: this engine has no use for the slot
    virtual Result<std::unique_ptr<host::Component>> construct(std::shared_ptr<host::Library>, const pb_component&,
                                                               const host::Settings&, const host::Services&);
    virtual Result<> fits(host::Component&) const { return {}; } // this engine

    // ---- the thread that steps ----
    // At each boundary before it takes the slot: gives the next one a part of what it has to know, so that no step
    // waits for all of it. True: it may take the slot now. A failure refuses it in the phase serves_phase().
    virtual Result<bool> warm_up(const host::Component&) { return true; }
    // The component in the slot is new: gives it what it has to know.
    virtual void enter() = 0;
    // Whether it serves what the engine has. A failure brings its predecessor back, in the phase serves_phase().
    virtual Result<> serves() { return {}; }
    virtual const char* serves_phase() const { return "accepts"; }
    // Its predecessor is back. False: it is not on probation.
    virtual bool roll_back(const std::string& phase, const Failure& why) = 0;
    // Whether a step on probation must be back before the next one is planned, because its predecessor may redo it.
    virtual bool redoes_steps() const { return true; }
    // Whether it is part of what computes a step: then none may be in flight while it is exchanged, and a step that
    // fails on its probation is computed anew with its predecessor.
    virtual bool computes() const { return false; }
    virtual void commit() {} // its predecessor is about to go
    struct StepUse { // what a step did
        bool planned, sampled;
    };
    struct StepCall { // of the component, in that step
        const char* name;
        bool made;
        uint64_t ns;
    };
    virtual StepCall call_of(const StepUse&) = 0;
};

}  // namespace patchbay::engine
