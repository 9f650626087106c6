// The faults of steps: of the one that was begun, and of those that were submitted and not waited for yet.
#pragma once
#include <deque>
#include <string>

#include "patchbay/sdk/step_fault.hpp"

namespace patchbay {

class StepFaults : public StepFault {
  public:
    // As sdk/device.hpp wants them.
    void submit_step() { submitted_.push_back(take_fault()); }
    void wait_step(); // throws the first fault of the oldest step that was submitted

  private:
    std::deque<std::string> submitted_; // the oldest first; empty: that step has none
};

}  // namespace patchbay
