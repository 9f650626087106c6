// One exchange of a component, from the request to its outcome. Held by its caller and by the slot that it
// is about; any thread but the one that steps may ask how far it is.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "host/component.hpp"
#include "host/swap_record.hpp"

namespace patchbay::host {

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
