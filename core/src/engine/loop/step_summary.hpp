// What a step leaves of queues and pages, for metrics and records. Costs O(what runs).
#pragma once
#include "base/clock.hpp"

namespace patchbay::kv {
class KvCache;
}

namespace patchbay::execution {
class Executor;
}

namespace patchbay::engine {

class Preemption;
class PressureMonitor;
class Sequences;
struct StepContext;
class StructuredOutput;

class StepSummary {
  public:
    struct Parts {
        const Sequences& sequences;
        kv::KvCache& kv;
        const PressureMonitor& pressure;
        const Preemption& preemption;
        const execution::Executor& executor;
        StructuredOutput& structured_output;
        const Clock& clock;
        StepContext& context;
    };
    explicit StepSummary(const Parts& parts) : p_(parts) {}

    void note_pass();  // what the executor says of the latest pass
    void note_state(); // after the step

  private:
    void note_queue(uint64_t now_ns);
    void note_pages();

    const Parts p_;
    uint64_t evictions_ = 0, chosen_evictions_ = 0; // until the step before
};

}  // namespace patchbay::engine
