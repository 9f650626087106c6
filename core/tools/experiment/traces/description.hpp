// What a trace contains, in numbers: how many requests, when, how long, and what their prompts share.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "experiment/traces/trace.hpp"

namespace patchbay::experiment {

struct LengthSummary {
    std::string name, unit; // "prompt", "tokens"
    double mean = 0;
    std::vector<double> quantiles; // of 0, 1, …, 100 %, interpolated as metrics are
};

struct ClassSummary {
    std::string name;
    uint64_t requests = 0;
    double prompt_mean = 0, output_mean = 0;
};

struct TraceDescription {
    std::string format;
    uint64_t requests = 0, left_out = 0;
    uint64_t sessions = 0, turns = 0; // turns: requests of sessions
    double seconds = 0, mean_rate = 0, gap_cv = 0; // gap_cv: of the gaps between arrivals; of a Poisson process 1
    std::vector<double> rates;        // requests per second in equal parts of the time; empty: it has no times
    std::vector<LengthSummary> lengths;
    // Prompt tokens that an endless prefix cache would have found, as far as the trace says what is in the prompts.
    uint64_t known_tokens = 0, shared_tokens = 0;
    std::vector<ClassSummary> classes;    // the most frequent first; empty: it has none
};

TraceDescription describe(const Trace&, uint32_t parts = 300);
nlohmann::ordered_json json_of(const TraceDescription&);

}  // namespace patchbay::experiment
