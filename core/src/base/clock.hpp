// The engine's only source of time: real, or virtual in a simulation. Nothing else reads a clock.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "patchbay/abi/services.h"

namespace patchbay {

class Clock {
  public:
    virtual ~Clock() = default;
    virtual uint64_t now_ns() const = 0;             // monotonic, from an arbitrary start
    virtual void wait_until_ns(uint64_t when_ns) = 0; // returns at once if the time has passed
};

class RealClock final : public Clock {
  public:
    uint64_t now_ns() const override;
    void wait_until_ns(uint64_t when_ns) override;
};

// Moves only on demand: by a simulated device, a test, or a caller that waits. Read by any thread, moved by one.
class VirtualClock final : public Clock {
  public:
    uint64_t now_ns() const override { return now_ns_; }
    void wait_until_ns(uint64_t when_ns) override { now_ns_ = when_ns > now_ns_ ? when_ns : now_ns_.load(); }
    void advance_ns(uint64_t by_ns) { now_ns_ += by_ns; }

  private:
    std::atomic<uint64_t> now_ns_ = 0;
};

pb_clock clock_service(Clock&); // patchbay.clock/1; the clock outlives it

// The date in UTC by strftime's format: for records and file names, never for measuring.
std::string utc_now(const char* format = "%Y-%m-%dT%H:%M:%SZ");

}  // namespace patchbay
