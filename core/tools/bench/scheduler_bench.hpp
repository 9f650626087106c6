// What a step costs beside its model: planning with a scheduler, checking and applying the plan, building the batch. On
// the serving engine, with a model and a device that take no time.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "config/engine_config.hpp"
#include "engine/engine.hpp"
#include "host/registry.hpp"

namespace patchbay::bench {

// The host's own time: what the device charges is never waited for.
class HostClock final : public Clock {
  public:
    uint64_t now_ns() const override { return clock_.now_ns(); }
    void wait_until_ns(uint64_t) override {}

  private:
    RealClock clock_;
};

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

// An engine whose sequences all decode, while others wait.
class DecodingEngine {
  public:
    // Settings of the engine that the case does not fix (block_size, prefix caching, …) are those of `config`.
    static Result<std::unique_ptr<DecodingEngine>> create(config::EngineConfig config, const host::Registry&,
                                                          const SchedulerCase&);
    struct Step {
        StepTimes times;
        uint32_t decoding; // sequences; fewer than asked where the policy moves others in
    };
    Result<Step> step(); // as often as the case says

  private:
    DecodingEngine() = default;
    HostClock clock_;
    std::unique_ptr<engine::Engine> engine_;
};

struct SchedulerResult {
    SchedulerCase asked;
    StepTimes median, p99;
    double decoding = 0; // sequences in a step, on average
};

Result<SchedulerResult> bench_scheduler(const config::EngineConfig&, const host::Registry&, const SchedulerCase&);

std::string table_of(const std::string& scheduler, const std::vector<SchedulerResult>&);
std::string json_of(const std::string& scheduler, const std::vector<SchedulerResult>&);

}  // namespace patchbay::bench
