// How much one API key may ask: requests under way at once, and requests per minute. Used by Server.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace patchbay::serve {

struct KeyLimitOptions { // 0: no limit
    uint32_t max_requests = 0;
    uint32_t requests_per_minute = 0; // on average; so many may come at once after a quiet minute
};

class KeyLimits { // [any thread]
  public:
    // now_ns: a monotonic clock.
    KeyLimits(KeyLimitOptions, std::function<uint64_t()> now_ns);

    struct Admitted {
        std::shared_ptr<void> permit; // held as long as the request is under way; null where it is refused
        std::string why;              // it is refused
        uint32_t retry_after_s = 0;   // when it may be admitted, likewise
    };
    Admitted admit(uint32_t key); // by its number

  private:
    struct Key {
        uint32_t under_way = 0;
        double allowance = 0; // requests that may come now
        uint64_t latest_ns = 0;
        bool seen = false;
    };
    void end(uint32_t key);

    const KeyLimitOptions options_;
    const std::function<uint64_t()> now_ns_;
    std::mutex mutex_;
    std::vector<Key> keys_; // by number, under the mutex
};

}  // namespace patchbay::serve
