// Where a component sits while the engine runs, and how another takes its place: who is in it, who is in line, and,
// during probation, who was replaced. Used by the engine for each kind that is swapped live; see docs/hot-swap.md.
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "host/swap.hpp"

namespace patchbay::host {

template <class Table>
const Table& table_of(const Component& c) {
    return *static_cast<const Table*>(c.type().vtable);
}

// What becomes of a swap whose newcomer cannot read what its predecessor would save.
enum class UnreadState { kStartsEmpty, kRefuses };

class Slot {
  public:
    static constexpr size_t kMaxPendingSwaps = 64;
    static constexpr size_t kMaxState = 1 << 20; // bytes that cross at a boundary

    Slot(std::string kind, UnreadState, const Clock&);
    ~Slot(); // closes what was asked of it: nothing of this slot's is left in a swap that is still held
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    void install(std::unique_ptr<Component>, Identity); // the first; before anything else

    // ---- any thread but the one that steps ----
    // transaction: as SwapRecord::transaction.
    std::shared_ptr<Swap> prepare(std::unique_ptr<Component> candidate, Identity to, uint64_t transaction = 0);
    std::shared_ptr<Swap> refuse(Identity to, const std::string& phase, const std::string& reason,
                                 uint64_t transaction = 0);
    // Gets in line. It takes the slot at the first boundary not before `not_before_ns`, once those before it are
    // settled; beyond kMaxPendingSwaps it is refused.
    void post(const std::shared_ptr<Swap>&, uint64_t not_before_ns = 0);
    // What the step's thread is to hear with its next boundary.
    void report(const SwapRecord&);
    // Refuses one that is ready or in line, which leaves it. Nothing where it has come further.
    void withdraw(const std::shared_ptr<Swap>&, const std::string& phase, const std::string& reason);

    // ---- the thread that steps ----
    bool filled() const { return current_.component != nullptr; } // else there is nothing to exchange
    const Component& current() const { return *current_.component; }
    const Component* previous() const { return previous_.component.get(); } // null: none is on probation
    // Calls f for each that has to stay up to date: the current one, and during probation its predecessor.
    template <class F>
    void each(F&& f) const {
        f(current());
        if (previous()) f(*previous());
    }

    // At a boundary: hot parameters of the current one, all of them or none. Its predecessor keeps its own.
    Result<> configure(const Settings& changes) { return current_.component->configure(changes); }
    // The transaction of the next in line, 0 where it is alone, if that is due and none is on probation.
    std::optional<uint64_t> due() const;
    // At a boundary: lets the next in line in, if it is due and alone. `greet` gives it what it has to know. Nothing
    // where nothing happened.
    using Greet = std::function<void(const Component&)>;
    std::optional<SwapRecord> exchange(uint64_t step, uint32_t probation_steps, const Greet&);
    // The same in parts, of which some may come at later boundaries. take(): the next in line, which is due; from then
    // on it is the candidate().
    void take();
    const Component* candidate() const; // null: none was taken that has not entered yet
    void note_pause(uint64_t ns);       // for it, at a boundary at which it did not enter
    SwapRecord enter(uint64_t step, uint32_t probation_steps, uint64_t since_ns, const Greet&); // or turned away
    // enter() in parts, for several slots at one boundary. hand_over(): state, which changes nothing yet; a failure has
    // a phase. Then either of the two that follow.
    Result<> hand_over(std::string& phase);
    SwapRecord turn_away(uint64_t step, const std::string& phase, const std::string& reason);
    void let_in();
    SwapRecord begin_probation(uint64_t step, uint32_t steps, uint64_t since_ns); // since: when the pause began

    uint32_t steps_left() const { return steps_left_; } // of probation
    uint64_t transaction() const; // of the candidate, or the one on probation; 0: it is alone, or there is none
    void count_step() { steps_left_ -= steps_left_ > 0; } // in which the current one was called and that ended well
    SwapRecord commit(uint64_t step);                   // one must be on probation
    // count_step(), and commit() if that was the last of its probation: then the record.
    std::optional<SwapRecord> pass(uint64_t step);
    // The predecessor is back; one must be on probation.
    SwapRecord roll_back(uint64_t step, const std::string& phase, const std::string& reason);
    // Refusals and what was given to report(), which the step's thread has not heard of yet.
    std::vector<SwapRecord> take_reports();

  private:
    struct Occupant {
        std::unique_ptr<Component> component;
        Identity identity;
    };
    struct InLine {
        std::shared_ptr<Swap> swap;
        uint64_t not_before_ns;
    };

    void sweep();                                          // lets go of settled swaps
    static std::string bare(std::string text, const SwapRecord&, const std::string& call);
    void note(const SwapRecord&); // the mutex is held

    const std::string kind_;
    const UnreadState unread_;
    const Clock& clock_;

    Occupant current_, previous_; // changed by the thread that steps, under the mutex
    std::shared_ptr<Swap> under_way_;
    uint32_t steps_left_ = 0;     // of probation

    std::atomic<bool> has_mail_ = false; // so that a boundary without one costs a load
    mutable std::mutex mutex_;           // of what follows
    std::deque<InLine> line_;
    std::vector<std::shared_ptr<Swap>> settled_;  // kept for another thread to let go of
    std::vector<std::weak_ptr<Swap>> prepared_;
    std::vector<SwapRecord> reports_;
};

}  // namespace patchbay::host
