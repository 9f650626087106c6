// Synthetic experiments: variants that differ in nothing but noise, or by an effect of a given size.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiment/conclusion.hpp"

namespace patchbay::experiment::levels {

enum class Noise { kNormal, kLognormal, kDrift, kHeavy };
inline constexpr Noise kNoises[] = {Noise::kNormal, Noise::kLognormal, Noise::kDrift, Noise::kHeavy};
const char* name_of(Noise);

struct Plan {
    Noise noise = Noise::kNormal;
    size_t variants = 2;
    uint32_t repeats = 10;
    std::vector<double> effects = {}; // a factor a variant; empty: 1
    std::optional<size_t> affected = {}; // metric that has the effect; none: all
};

// Primary metrics where there is an objective: a share, and times.
Question question();
// Numbers of every metric for every run. Workloads differ from repeat to repeat by 30 %, the same for all variants;
// metrics of a run share half of their noise; drift goes by the order in which runs take place.
Measured made_up(const Plan&, uint64_t seed);
// The same from requests: 40 a run, of few tokens, with lognormal latencies and a speed of the run as a whole.
std::vector<RunSummary> made_up_runs(size_t variants, uint32_t repeats, uint64_t seed);

}  // namespace patchbay::experiment::levels
