// Where a component sits while the engine runs, and how another takes its place: the current component, the queue of
// swaps, and the candidate. Used by the engine for each kind that is swapped live; see docs/hot-swap.md.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "host/probation.hpp"
#include "host/state_transfer.hpp"
#include "host/swap.hpp"
#include "host/swap_line.hpp"

namespace patchbay::host {

template <class Table>
const Table& table_of(const Component& c) {
    return *static_cast<const Table*>(c.type().vtable);
}

class Slot { // [the thread that steps]
  public:
    Slot(std::string kind, UnreadState, const Clock&);

    void install(std::unique_ptr<Component>, Identity); // the first; before anything else
    SwapLine& line() { return line_; }                  // [any thread]

    bool filled() const { return filled_; }             // [any thread] else there is nothing to exchange
    const Component& current() const { return *current_; }
    Component& current() { return *current_; }
    const Component* previous() const { return probation_.predecessor(); } // null: none is on probation
    // Calls f for each that has to stay up to date: the current one, and during probation its predecessor.
    template <class F>
    void each(F&& f) const {
        f(current());
        if (previous()) f(*previous());
    }

    // At a boundary. The transaction of the next in line, 0 where it is alone, if that is due and none is under way.
    std::optional<uint64_t> due() const;
    void take();                        // the next in line, which is due; from then on it is the candidate()
    const Component* candidate() const; // null: none was taken that has not entered yet
    void note_pause(uint64_t ns);       // for it, at a boundary at which it did not enter
    // It gets the current one's state, which changes nothing else yet; a failure has a phase. Then it is turned away,
    // or let in and on probation.
    Result<> hand_over(std::string& phase);
    SwapRecord turn_away(uint64_t step, const std::string& phase, const Failure& why);
    void let_in();
    SwapRecord begin_probation(uint64_t step, uint32_t steps, uint64_t since_ns);

    uint64_t transaction() const; // of the candidate, or the one on probation; 0: it is alone, or there is none
    uint32_t steps_left() const { return probation_.steps_left(); }
    void count_step() { probation_.count_step(); }
    SwapRecord commit(uint64_t step); // one must be on probation
    // The predecessor is back; one must be on probation.
    SwapRecord roll_back(uint64_t step, const std::string& phase, const Failure& why);

  private:
    const UnreadState unread_;
    const Clock& clock_;
    bool filled_ = false;                // since install()
    std::unique_ptr<Component> current_; // its identity is the line's holder
    Probation probation_;
    std::shared_ptr<Swap> under_way_;
    SwapLine line_;
};

// Lets the candidate of one slot in, or turns it away. `greet` gives it what it has to know; since: when the pause
// began.
using Greet = std::function<void(const Component&)>;
SwapRecord enter(Slot&, uint64_t step, uint32_t probation_steps, uint64_t since_ns, const Greet&);

}  // namespace patchbay::host
