// What a token takes to compute, as the steps so far say: `preemption_mode: auto` compares it with what copying takes.
// Engine-internal.
#pragma once
#include <algorithm>
#include <cstdint>

namespace patchbay::engine {

// By how much a token makes a step longer: the slope of a line through (tokens, time) of late steps, of which later
// ones weigh more. Tokens are computed anew beside others, so the fixed part of a step does not count.
class TokenCost {
  public:
    void step(uint32_t tokens, uint64_t ns) {
        if (tokens == 0) return;
        const double x = tokens, y = static_cast<double>(ns), w = std::max(kWeight, 1.0 / ++steps_);
        x_ += w * (x - x_);
        y_ += w * (y - y_);
        xx_ += w * (x * x - xx_);
        xy_ += w * (x * y - xy_);
    }
    bool is_measured() const { return steps_ > 0; }
    double ns_a_token() const {
        const double variance = xx_ - x_ * x_;
        const double mean = x_ > 0 ? y_ / x_ : 0;
        if (variance < kLeastSpread * x_ * x_) return mean; // steps of one size tell no slope
        return std::clamp((xy_ - x_ * y_) / variance, 0.0, mean);
    }

  private:
    static constexpr double kWeight = 1.0 / 64;       // of the latest step
    static constexpr double kLeastSpread = 1.0 / 400; // a deviation of a twentieth of the mean
    double steps_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0; // means
};

}  // namespace patchbay::engine
