// The connection of a rank's device to the others: made anew after a step that failed, given up from another thread.
// For the CUDA device.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>

#include "gpu.hpp"
#include "ranks.hpp"

namespace patchbay {

class RankConnection {
  public:
    explicit RankConnection(Gpu& gpu) : gpu_(gpu) {}

    void connect(const pb_group&); // throws Error
    void disconnect() noexcept;    // [any]
    void close();                  // what they worked with may go then
    uint32_t size() const { return ranks_ ? ranks_->size() : 1; }
    bool is_lost() const { return ranks_ && ranks_->aborted(); }
    Ranks& ranks() { return *ranks_; } // once they are connected

  private:
    Gpu& gpu_;
    std::mutex mutex_; // disconnect() comes from another thread
    std::atomic<bool> disconnected_ = false;
    std::unique_ptr<Ranks> ranks_;
};

}  // namespace patchbay
