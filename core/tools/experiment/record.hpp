// What a run leaves, request by request and step by step: what the results store keeps and statistics read.
// Times are ns since the start of the run.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/request/request.hpp"
#include "engine/step_report.hpp"

namespace patchbay::experiment {

struct RequestRecord { // of several outputs it finishes with the last one; what is about one is about the first
    uint64_t arrival_ns = 0, first_scheduled_ns = 0, finish_ns = 0;
    std::vector<uint64_t> token_ns; // one an output token; tokens that came together have the same time
    std::vector<engine::TokenId> output;
    std::vector<std::vector<engine::TokenId>> others; // of outputs 1, 2, …
    uint32_t prompt_tokens = 0, cached_tokens = 0, preemptions = 0;
    uint64_t deadline_ns = 0; // 0: none
    uint32_t tenant = 0;
    int32_t priority = 0;
    std::string label; // of its class, by the trace; empty: none
    engine::FinishReason finish = engine::FinishReason::kNone;
    std::string error; // why it was refused or failed

    uint64_t output_tokens() const { // of all outputs
        uint64_t all = output.size();
        for (const auto& tokens : others) all += tokens.size();
        return all;
    }
    bool completed() const { return engine::is_complete(finish); }
};

struct SwapOutcome { // of what `at` asked for
    host::SwapRecord record; // time_ns: since the start of the run
    std::string task;        // "scheduler sjf (ageing=50) once 200 requests have arrived"
};

struct TimeSpan { // in ns since the start of a run, ends included
    uint64_t from_ns = 0, until_ns = ~uint64_t{0};
    bool has(uint64_t at_ns) const { return from_ns <= at_ns && at_ns <= until_ns; }
    double seconds() const { return until_ns > from_ns ? static_cast<double>(until_ns - from_ns) * 1e-9 : 0; }
};

enum class RunEnd { kComplete, kInterrupted, kFailed };

struct CpuUse { // of the machine while the run was measured; shares are of the CPU time of all its cores
    double steal = 0;                   // that the host of a virtual machine took
    double others = 0;                  // that other processes took
    double load_average = 0;            // of one minute, before the run
    std::optional<double> mhz;          // mean clock of the cores, after the run
};

struct NamedNumber {
    std::string name; // of a metric
    double value = 0;
};

struct NumberedRequest {
    uint32_t number;                    // in the workload
    RequestRecord request;
};

struct RunRecord {
    size_t variant = 0;
    uint32_t repeat = 0;
    uint32_t position = 0;              // in the order of execution
    uint32_t attempt = 0;               // 1: the run took place again, as others disturbed the first one
    std::optional<double> rate;         // of arrivals, requests per second; none: as the workload says
    std::optional<CpuUse> cpu_use;      // none: of a simulation
    std::string started;                // UTC, ISO 8601
    uint64_t duration_ns = 0;           // from the start to the last output
    RunEnd end = RunEnd::kComplete;
    std::vector<std::string> faults;    // why the run is invalid; empty: it is valid
    std::vector<RequestRecord> requests; // in the order of the workload
    std::vector<engine::StepReport> steps; // their times too since the start of the run
    std::vector<SwapOutcome> swaps;
    std::vector<NamedNumber> numbers;   // metrics of its steps and plugins, by name

    bool valid() const { return end == RunEnd::kComplete && faults.empty(); }
};

}  // namespace patchbay::experiment
