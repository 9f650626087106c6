// What a token takes to compute, as the steps so far say: `preemption_mode: auto` compares it with what copying takes.
// Engine-internal.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/line_fit.hpp"

namespace patchbay::engine {

// By how much a token makes a step longer: the slope of a line through (tokens, time) of late steps, of which later
// ones weigh more. Tokens are computed anew beside others, so the fixed part of a step does not count.
class TokenCost {
  public:
    void step(uint32_t tokens, uint64_t ns) {
        if (tokens == 0) return;
        line_.add(tokens, static_cast<double>(ns), std::max(kWeight, 1.0 / ++steps_));
    }
    bool is_measured() const { return steps_ > 0; }
    double ns_a_token() const {
        const double x = line_.mean_x(), mean = x > 0 ? line_.mean_y() / x : 0;
        if (line_.variance() < kLeastSpread * x * x) return mean; // steps of one size tell no slope
        return std::clamp(line_.slope(), 0.0, mean);
    }

  private:
    static constexpr double kWeight = 1.0 / 64;       // of the latest step
    static constexpr double kLeastSpread = 1.0 / 400; // a deviation of a twentieth of the mean
    double steps_ = 0;
    LineFit line_; // ns by tokens
};

}  // namespace patchbay::engine
