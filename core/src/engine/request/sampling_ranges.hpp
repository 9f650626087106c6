// Which values parameters of sampling have that are no whole numbers.
#pragma once
#include <array>

#include "engine/request/sampling_params.hpp"

namespace patchbay::engine {

struct SamplingRange { // inclusive
    const char* name;
    float SamplingParams::*field;
    float low, high;
};
inline constexpr std::array<SamplingRange, 15> kSamplingRanges{
    {{"temperature", &SamplingParams::temperature, 0, 100},
     {"top_p", &SamplingParams::top_p, 1e-6f, 1},
     {"min_p", &SamplingParams::min_p, 0, 1},
     {"repetition_penalty", &SamplingParams::repetition_penalty, 1e-3f, 100},
     {"length_penalty", &SamplingParams::length_penalty, -10, 10},
     {"presence_penalty", &SamplingParams::presence_penalty, -10, 10},
     {"frequency_penalty", &SamplingParams::frequency_penalty, -10, 10},
     {"dry_multiplier", &SamplingParams::dry_multiplier, 0, 100},
     {"dry_base", &SamplingParams::dry_base, 1, 100},
     {"top_n_sigma", &SamplingParams::top_n_sigma, 0, 100},
     {"typical_p", &SamplingParams::typical_p, 1e-6f, 1},
     {"xtc_probability", &SamplingParams::xtc_probability, 0, 1},
     {"xtc_threshold", &SamplingParams::xtc_threshold, 0, 1},
     {"mirostat_tau", &SamplingParams::mirostat_tau, 1e-3f, 100},
     {"mirostat_eta", &SamplingParams::mirostat_eta, 0, 10}}};

}  // namespace patchbay::engine
