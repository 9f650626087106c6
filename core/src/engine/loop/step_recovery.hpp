// What becomes of a step that fails: the predecessor of a component on probation computes it anew, or all requests end.
#pragma once

#include "base/result.hpp"
#include "engine/loop/lifecycle.hpp"

namespace patchbay::engine {

class Branches;
class Passes;
class Swaps;

class StepRecovery {
  public:
    StepRecovery(Branches& branches, Passes& passes, Lifecycle& lifecycle, Swaps& swaps)
        : branches_(branches), passes_(passes), lifecycle_(lifecycle), swaps_(swaps) {}

    void begin_step() { recovered_ = false; }
    bool recovered() const { return recovered_; } // in this step
    // A step that fails while part of what computes it is on probation is computed anew by the predecessor: no failure.
    Result<> or_recovered(const Result<>& done);
    void end_all(const Failure& of_step); // the engine cannot go on

  private:
    Branches& branches_;
    Passes& passes_;
    Lifecycle& lifecycle_;
    Swaps& swaps_;
    bool recovered_ = false;
};

}  // namespace patchbay::engine
