// How many blocks are kept free when requests are admitted: more when blocks run out, fewer again once preemptions
// stop. Engine-internal; `adaptive_watermark`.
#pragma once
#include <algorithm>
#include <cstdint>

namespace patchbay::engine {

class PressureMonitor {
  public:
    explicit PressureMonitor(double watermark = 0) : lowest_(watermark), watermark_(watermark) {}

    double watermark() const { return watermark_; } // share of the blocks
    // After a step that ran something. Each preemption for want of blocks says that one too many was admitted; a step
    // without says little.
    void step(uint32_t preemptions) {
        if (preemptions > 0) watermark_ = std::min(std::max(kHighest, lowest_), watermark_ + kRise * preemptions);
        else watermark_ -= (watermark_ - lowest_) * kFall;
    }

  private:
    static constexpr double kHighest = 0.5, kRise = 0.02, kFall = 1.0 / 256;
    double lowest_, watermark_;
};

}  // namespace patchbay::engine
