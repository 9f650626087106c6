// A moment after which something is given up, in ticks of a shared count. Used by Connection.
#pragma once
#include <atomic>
#include <cstdint>

namespace patchbay::serve {

class Deadline { // set by one thread, read by any
  public:
    static constexpr uint32_t kTicksPerSecond = 4;

    explicit Deadline(const std::atomic<uint64_t>& tick) : tick_(tick) {} // which outlives it
    void set(uint32_t seconds) { at_ = seconds == 0 ? 0 : tick_ + uint64_t(seconds) * kTicksPerSecond; } // 0: none
    bool is_over() const {
        const uint64_t at = at_;
        return at != 0 && at <= tick_;
    }

  private:
    const std::atomic<uint64_t>& tick_;
    std::atomic<uint64_t> at_ = 0; // a tick; 0: none
};

}  // namespace patchbay::serve
