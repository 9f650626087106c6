// Swaps of all slots, as the loop sees them: at the boundary before a step, and during probation.
#pragma once
#include <vector>

#include "engine/swap/swap_port.hpp"
#include "engine/swap/transactions.hpp"

namespace patchbay::config {
struct SwapSettings;
}

namespace patchbay::engine {

struct StepContext;
class SwapJournal;

class Swaps {
  public:
    struct Parts {
        const config::SwapSettings& settings;
        std::vector<SwapPort*> ports; // in the order in which they are exchanged at a boundary
        SwapJournal& journal;
        StepContext& context;
        const Clock& clock;
    };
    explicit Swaps(Parts parts)
        : p_(std::move(parts)), transactions_(p_.settings, p_.clock, p_.journal, p_.context) {}

    Transactions& transactions() { return transactions_; }

    // Each slot's next in line, and the next transaction; of what computes only where nothing is in flight.
    void at_boundary(bool in_flight);
    // Whether one is due that waits for the steps in flight.
    bool waits_for_steps() const;
    // Whether one goes on at the next boundary, though nothing else is to be done until then.
    bool needs_boundary() const;
    // The step has failed where it computes. True: the predecessor of a component on probation is back, and everything
    // is to be computed anew.
    bool recover(const Failure& why);
    bool can_recover() const;
    // Whether a component is on probation whose steps must be back before the next one is planned.
    bool step_may_be_redone() const;
    void end_step(const SwapPort::StepUse&); // of probation

  private:
    void exchange(SwapPort&);
    void end_step(SwapPort&, const SwapPort::StepUse&);

    const Parts p_;
    Transactions transactions_;
};

}  // namespace patchbay::engine
