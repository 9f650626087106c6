// Whether one more request for text, embeddings or tokens may come in: not while the server drains, within the limits
// of its API key, and only so many at once. Used by Server and the routes for these.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.hpp"
#include "serve/key_limits.hpp"

namespace patchbay::serve {

class Admission { // [any thread]
  public:
    // max_requests: under way at once; now_ns: a monotonic clock.
    Admission(uint32_t max_requests, KeyLimitOptions, std::function<uint64_t()> now_ns);

    struct Admitted {
        std::shared_ptr<void> permit; // held as long as the request is under way; null where it is refused
        Failure why{};                // it is refused
        const char* reason = "";      // likewise, as ServeMetrics names it
        uint32_t retry_after_s = 0;   // when it may be admitted, likewise; 0: not known
    };
    Admitted admit(uint32_t key); // by its number

    bool close() { return !closed_.exchange(true); } // none is admitted any more; false: it was closed before
    bool is_closed() const { return closed_; }

  private:
    std::shared_ptr<void> permit(); // null: too many are under way

    const uint32_t max_requests_;
    KeyLimits key_limits_;
    std::atomic<uint32_t> under_way_ = 0;
    std::atomic<bool> closed_ = false;
};

}  // namespace patchbay::serve
