// What a step costs beside its model: planning with a scheduler, checking and applying the plan, building the batch. On
// the serving engine, with a model and a device that take no time.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/engine_config.hpp"
#include "host/registry.hpp"

namespace patchbay::bench {

struct SchedulerCase {
    uint32_t running = 256, waiting = 0; // sequences that decode in every step, and others that wait
    uint32_t prompt = 512;               // tokens of each
    uint32_t steps = 1000;               // that are timed
};

struct StepTimes { // seconds
    double plugin = 0; // inside the scheduler's plan()
    double plan = 0;   // with the records that it is shown, and the check of its plan
    double apply = 0, build = 0;
    double sum = 0;    // plan + apply + build
    double rest = 0;   // of the step, outside forward pass and sampling: outputs, callbacks, the report
};

struct DecodingStep {
    StepTimes times;
    uint32_t decoding; // sequences; fewer than asked where the policy moves others in
};
// The steps of an engine whose sequences all decode, while others wait: as many as the case says. Settings of the
// engine that the case does not fix (block_size, prefix caching, …) are those of `config`.
Result<std::vector<DecodingStep>> decoding_steps(config::EngineConfig config, const host::Registry&,
                                                 const SchedulerCase&);

struct SchedulerResult {
    SchedulerCase asked;
    StepTimes median, p99;
    double decoding = 0; // sequences in a step, on average
};

Result<SchedulerResult> bench_scheduler(const config::EngineConfig&, const host::Registry&, const SchedulerCase&);

std::string table_of(const std::string& scheduler, const std::vector<SchedulerResult>&);
std::string json_of(const std::string& scheduler, const std::vector<SchedulerResult>&);

}  // namespace patchbay::bench
