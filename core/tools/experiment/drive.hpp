// One run: feeds a workload to an engine, steps it until all is done, and keeps what happened.
#pragma once
#include <functional>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "engine/request.hpp"
#include "engine/step_report.hpp"
#include "experiment/record.hpp"
#include "experiment/workload.hpp"

namespace patchbay::experiment {

// The part of engine::Engine that a run needs, so that tests can drive a fake.
class DrivenEngine {
  public:
    virtual ~DrivenEngine() = default;
    virtual Result<engine::RequestId> add_request(engine::Request) = 0;
    virtual void abort(engine::RequestId) = 0;
    virtual bool has_unfinished() const = 0;
    virtual Result<engine::StepReport> step() = 0;
};

struct DriveHooks { // any may be empty
    std::function<void(uint64_t start_ns)> on_start; // before the first step: the run's time 0 on the engine's clock
    std::function<bool()> interrupted;
    std::function<void(engine::RequestId, uint64_t arrival_ns, uint32_t prompt_tokens, uint32_t n)> on_request;
    std::function<void(const engine::RequestOutput&)> on_output;
    std::function<void(const engine::StepReport&, size_t finished)> on_step; // finished: requests so far
};

// Fills requests, steps, duration, end and faults of the record.
void drive(DrivenEngine&, Clock&, const std::vector<PlannedRequest>&, const DriveHooks&, RunRecord&);

// Fills kv_mean and kv_max from the steps.
void summarise_kv(RunRecord&);

}  // namespace patchbay::experiment
