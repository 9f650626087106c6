// A clock whose waits end when an experiment is interrupted: the next arrival may be minutes away.
#pragma once
#include <algorithm>
#include <functional>
#include <utility>

#include "base/clock.hpp"

namespace patchbay::experiment {

class InterruptibleClock final : public Clock {
  public:
    InterruptibleClock(Clock& clock, std::function<bool()> interrupted)
        : clock_(clock), interrupted_(std::move(interrupted)) {}
    uint64_t now_ns() const override { return clock_.now_ns(); }
    void wait_until_ns(uint64_t when_ns) override {
        constexpr uint64_t kSliceNs = 50'000'000;
        for (uint64_t now; (now = clock_.now_ns()) < when_ns && !(interrupted_ && interrupted_());)
            clock_.wait_until_ns(std::min(when_ns, now + kSliceNs));
    }

  private:
    Clock& clock_;
    std::function<bool()> interrupted_; // empty: never
};

}  // namespace patchbay::experiment
