// Who is in line for a slot, what its thread is to hear of at the next boundary, and what other threads are to let go
// of. The side of a slot that any thread may use; see host/slot.hpp for the other one.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "host/swap.hpp"

namespace patchbay::host {

class SwapLine {
  public:
    static constexpr size_t kMaxPendingSwaps = 64;

    SwapLine(std::string kind, const Clock& clock) : kind_(std::move(kind)), clock_(clock) {}
    ~SwapLine(); // closes all that it has prepared: nothing of the slot's is left in a swap that is still held
    SwapLine(const SwapLine&) = delete;
    SwapLine& operator=(const SwapLine&) = delete;

    // ---- any thread but the one that steps ----
    // transaction: as SwapRecord::transaction.
    std::shared_ptr<Swap> prepare(std::unique_ptr<Component> candidate, Identity to, uint64_t transaction = 0);
    std::shared_ptr<Swap> refuse(Identity to, const std::string& phase, const Failure& why,
                                 uint64_t transaction = 0);
    // Gets in line. It takes the slot at the first boundary not before `not_before_ns`, once those before it are
    // settled; beyond kMaxPendingSwaps it is refused.
    void post(const std::shared_ptr<Swap>&, uint64_t not_before_ns = 0);
    // What the step's thread is to hear with its next boundary.
    void report(const SwapRecord&);
    // Refuses one that is ready or in line, which leaves it. Nothing where it has come further.
    void withdraw(const std::shared_ptr<Swap>&, const std::string& phase, const Failure& why);

    // ---- the thread that steps ----
    Identity replace_holder(Identity);   // of the slot; the one before
    std::optional<uint64_t> due() const; // the transaction of the first in line, if that is due
    std::shared_ptr<Swap> pop();         // the first; there must be one
    // Refusals and what was given to report(), which the step's thread has not heard of yet.
    std::vector<SwapRecord> take_reports();
    // change(record, holder of the slot), by which the swap is settled; another thread is the one to let go of it.
    template <class F>
    SwapRecord settle(std::shared_ptr<Swap>& swap, F&& change) {
        const std::lock_guard lock(mutex_);
        settled_.push_back(std::move(swap));
        return settled_.back()->update([&](SwapRecord& r) { change(r, holder_); });
    }

  private:
    struct InLine {
        std::shared_ptr<Swap> swap;
        uint64_t not_before_ns;
    };
    void sweep();                 // lets go of settled swaps
    void note(const SwapRecord&); // the mutex is held

    const std::string kind_;
    const Clock& clock_;
    std::atomic<bool> has_mail_ = false; // so that a boundary without one costs a load
    mutable std::mutex mutex_;           // of what follows
    Identity holder_; // changed by the thread that steps
    std::deque<InLine> line_;
    std::vector<std::shared_ptr<Swap>> settled_; // kept for another thread to let go of
    std::vector<std::weak_ptr<Swap>> prepared_;
    std::vector<SwapRecord> reports_;
};

}  // namespace patchbay::host
