// Swaps of several slots that succeed or fail together: they take their slots at one boundary, where all of them can,
// and are committed or rolled back in one step. Used by Swaps, which does the same for a swap that is alone.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/swap/swap_port.hpp"
#include "engine/swap/together.hpp"

namespace patchbay {
class Clock;
}

namespace patchbay::config {
struct SwapSettings;
}

namespace patchbay::host {
class Swap;
struct SwapRecord;
}

namespace patchbay::engine {

struct StepContext;
class SwapJournal;

// Why the others of its transaction fail with it: "scheduler fcfs→sjff was refused in phase find: …". Their phase is
// kTogether.
Failure failed_by(const host::SwapRecord&);

class Transactions {
  public:
    struct Member { // each of another slot
        SwapPort* port;
        std::shared_ptr<host::Swap> swap;
    };

    Transactions(const config::SwapSettings& settings, const Clock& clock, SwapJournal& journal, StepContext& context)
        : settings_(settings), clock_(clock), journal_(journal), context_(context) {}

    // ---- any thread ----
    uint64_t next_number() { return ++numbers_; } // from 1
    // All of them are ready, with the same number: all get in line, or all are refused.
    void post(std::vector<Member>, uint64_t not_before_ns);

    // ---- the thread that steps ----
    // Warms up what is due, a portion at each boundary, and lets in what knows all; of what computes only where nothing
    // is in flight.
    void at_boundary(bool in_flight);
    bool any_candidate() const { return !candidates_.empty(); } // that goes on at each boundary
    bool waits_for_steps() const;     // as Swaps
    void settle();                    // commits where all have passed, rolls back where one was

  private:
    struct Transaction {
        uint64_t number;
        std::vector<Member> members;
        size_t warm = 0; // so many of the members know all, the first ones
    };

    static bool computes(const Transaction&);
    static bool is_due(const Transaction&);
    void take_due();
    bool warm_up(Transaction&);
    void turn_away(const Transaction&, const Member& because, const std::string& phase, const Failure& why);
    void begin(Transaction);
    bool hand_over(const Transaction&);
    void roll_back_rest(const Transaction&);

    const config::SwapSettings& settings_;
    const Clock& clock_;
    SwapJournal& journal_;
    StepContext& context_;
    std::vector<Transaction> candidates_; // taken from their lines, and not in their slots yet
    std::vector<Transaction> on_probation_;

    std::atomic<uint64_t> numbers_ = 0;
    std::atomic<bool> any_posted_ = false; // so that a boundary without one costs a load
    mutable std::mutex mutex_;             // of what follows; held while all get in line, so that lines agree
    std::deque<Transaction> posted_;
};

}  // namespace patchbay::engine
