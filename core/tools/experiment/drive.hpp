// One run: feeds a workload to an engine, steps it until all is done, and keeps what happened.
#pragma once
#include <functional>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "engine/request/request.hpp"
#include "engine/step_report.hpp"
#include "engine/stepping.hpp"
#include "experiment/record.hpp"
#include "experiment/workload.hpp"

namespace patchbay::experiment {

enum class Feeding { kAhead, kAsDue }; // all requests before the first step; or each once it arrives

struct Rows { // of a run that goes on
    std::vector<engine::StepReport> steps;
    std::vector<NumberedRequest> requests; // that have ended
};

struct DriveHooks { // any may be empty
    TimeSpan counted{};                // steps that lie in it, or in part, make the numbers
    Feeding feeding = Feeding::kAhead; // as they are due: only on a clock that stands still meanwhile
    std::function<void(uint64_t start_ns)> on_start; // before the first step: the run's time 0 on the engine's clock
    std::function<void()> between_steps; // before each step
    std::function<bool()> interrupted;
    std::function<bool()> draining; // the run is to end with the requests that have arrived
    std::function<void(engine::RequestId, uint64_t arrival_ns, uint32_t prompt_tokens, uint32_t n)> on_request;
    std::function<void(const engine::RequestOutput&)> on_output;
    std::function<void(const engine::StepReport&, size_t finished)> on_step; // finished: requests so far
    std::function<void(Rows)> on_rows; // between two steps, some at a time; what it was given is not in the record
};

// Fills requests, steps, duration, end, faults and the numbers of steps of the record.
void drive(engine::SteppingEngine&, Clock&, const Requests&, const DriveHooks&, RunRecord&);

}  // namespace patchbay::experiment
