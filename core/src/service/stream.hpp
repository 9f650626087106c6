// The output of one request on its way from the loop's thread to its reader. Used by EngineThread, its loop and its
// callers.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

#include "base/result.hpp"
#include "engine/request/request.hpp"

namespace patchbay::service {

// A bounded queue of deltas that never makes the loop wait: once `max_queued` deltas are unread, a new one is merged
// into the last unread delta of the same output. So a slow reader gets fewer and longer deltas, none lost and none
// doubled, and what is kept is bounded by max_tokens.
class Stream {
  public:
    // outputs: how many endings the request has: its n, or 1 for 0, which is refused. on_ready: called on the loop's
    // thread, without a lock held, when a reader that found nothing would now find something; it must return at once.
    // May be empty.
    Stream(uint32_t outputs, size_t max_queued, std::function<void()> on_ready);

    // ---- any thread ----
    // Waits until the engine has accepted or refused the request; its id, or why not. kCancelled: aborted before.
    Result<engine::RequestId> accepted();
    // The next delta in order; waits for it. Nothing: all outputs have ended and were read, or the request was refused
    // or lost its engine, which failure() then says.
    std::optional<engine::RequestOutput> next();
    std::optional<engine::RequestOutput> try_next(); // does not wait
    bool finished() const;                           // nothing more will come
    std::optional<Failure> failure() const;
    std::optional<engine::RequestId> id() const; // none: it was not accepted yet, or never

    // ---- the loop's thread ----
    void accept(engine::RequestId);
    bool push(const engine::RequestOutput&); // true: it was the last delta of the last output
    void fail(Failure); // no output comes after it; what was pushed before can still be read
    void abort();       // of a request that no engine has had: all outputs end with finish reason abort

  private:
    std::optional<engine::RequestOutput> take();
    bool over() const { return failure_ || ended_ == outputs_; }

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    const uint32_t outputs_;
    const size_t max_queued_;
    const std::function<void()> on_ready_;
    std::optional<engine::RequestId> id_;
    std::deque<engine::RequestOutput> queue_;
    uint32_t ended_ = 0; // outputs whose last delta was pushed
    std::optional<Failure> failure_;
};

}  // namespace patchbay::service
