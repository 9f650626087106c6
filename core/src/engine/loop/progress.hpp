// A policy that runs nothing while there is work loses its slot to its predecessor, or ends the engine. Part of the
// loop.
#pragma once
#include <cstdint>

#include "base/result.hpp"
#include "engine/scheduling/scheduler_port.hpp"

namespace patchbay::engine {

class Sequences;

class Progress {
  public:
    Progress(Clock& clock, const Sequences& sequences, SchedulerPort& scheduler)
        : clock_(clock), sequences_(sequences), scheduler_(scheduler) {}
    // Before a step, with none in flight: if no request waits or runs, waits on the clock for the next arrival.
    void wait_if_idle();
    // After each step; idle: it ran nothing and nothing came back, though there is work. A policy may wait on purpose,
    // for a fuller batch or a time: it is asked again after a millisecond of the clock, or at the next arrival.
    Result<> check(bool idle);

  private:
    Clock& clock_;
    const Sequences& sequences_;
    SchedulerPort& scheduler_;
    uint32_t idle_steps_ = 0; // in a row
};

}  // namespace patchbay::engine
