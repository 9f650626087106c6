// The connection of a rank to the others: made anew after a step that failed, given up from another thread.
#pragma once
#include <memory>
#include <mutex>

#include "communicator.hpp"
#include "patchbay/plugin.hpp"

namespace patchbay {

class RankConnection {
  public:
    explicit RankConnection(const pb_host& host) : clock_(host), metrics_(host) {}

    void connect(const pb_group&); // throws Error
    void disconnect() noexcept;    // [any]
    uint32_t size() const { return communicator_ ? communicator_->size() : 1; }

    template <class F>
    void communicate(double bytes, F&& f) { // calls and times f(communicator), once they are connected
        const uint64_t start = clock_ ? clock_.now_ns() : 0;
        f(*communicator_);
        if (clock_) metrics_.add("collective_seconds", static_cast<double>(clock_.now_ns() - start) * 1e-9);
        metrics_.add("collective_bytes", bytes);
    }

  private:
    HostClock clock_;
    Metrics metrics_;
    std::mutex connecting_; // guards the members below: disconnect() may come at any time
    bool disconnected_ = false;
    std::unique_ptr<Communicator> communicator_; // null: one rank
};

}  // namespace patchbay
