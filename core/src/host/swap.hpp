// One exchange of a component, from the request to its outcome. Held by its caller and by the slot that it
// is about; any thread but the one that steps may ask how far it is.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "host/component.hpp"
#include "host/registry.hpp"

namespace patchbay::host {

enum class SwapState { kReady, kPosted, kOnProbation, kCommitted, kRefused, kRolledBack };
std::string_view name_of(SwapState); // "ready", "posted", "on probation", "committed", "refused", "rolled back"

struct SwapRecord {
    std::string kind;            // "scheduler"
    uint64_t transaction = 0;    // the same of swaps that succeed or fail together; 0: it is alone
    Identity from, to;           // from: what holds the slot, until the exchange; to: as far as it was found
    SwapState state = SwapState::kReady;
    // Refused in: find, probe, create, post, save, load, or what the slot's port names; rolled back in: the call that
    // failed, time, run. Of either: together, where another one of its transaction was.
    std::string phase, reason;
    uint64_t step = 0;           // before which the slot changed hands; 0: it never did
    uint64_t time_ns = 0;        // then, on the engine's clock
    uint64_t pause_ns = 0;       // what that took: of several boundaries, the longest
    uint64_t end_step = 0;       // in which it was committed, refused at the boundary or rolled back
    bool after_calls = false;    // rolled back after the calls of that step, which were made of the one that left

    bool settled() const { return state >= SwapState::kCommitted; }
    // Refused or rolled back. why: it need not say again whose call in which phase it was.
    void end(SwapState, const std::string& in_phase, const std::string& why);
    std::string text() const;    // "swap scheduler mine→mine: refused in phase load: cannot read state 'mine/1'"
};

class Swap {
  public:
    SwapRecord record();
    SwapRecord wait(); // until it is settled, or its engine has ended

  private:
    friend class Slot;
    friend class SwapLine;
    Swap(std::string kind, uint64_t transaction, Identity from, Identity to);

    uint64_t transaction() const { return record_.transaction; } // which never changes
    void close();                                                // its engine has ended
    template <class F>
    SwapRecord update(F&& change) { // of the record and what else the mutex guards
        const std::lock_guard lock(mutex_);
        change(record_);
        if (record_.settled()) changed_.notify_all();
        return record_;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    SwapRecord record_;
    bool closed_ = false;                  // its engine has ended
    std::unique_ptr<Component> candidate_; // until the exchange
    std::unique_ptr<Component> retired_;   // what came out of the slot: destroyed here, never by the step's thread
    std::string state_;                    // what the predecessor saved: room for it is made beside the steps
};

}  // namespace patchbay::host
