// The faults of steps: of the one that was begun, and of those that were submitted and not waited for yet.
#pragma once
#include <deque>
#include <string>
#include <utility>

namespace patchbay {

class StepFaults {
  public:
    bool faulty() const { return !fault_.empty(); }
    void set_fault(std::string text) noexcept { fault_ = std::move(text); }
    void clear_fault() { fault_.clear(); } // a step begins

    // As sdk/device.hpp wants them.
    void end_step(); // throws the step's first fault
    void submit_step();
    void wait_step(); // throws the first fault of the oldest step that was submitted

  private:
    std::string fault_; // the first one of this step; later ops do nothing
    std::deque<std::string> submitted_; // the oldest first; empty: that step has none
};

}  // namespace patchbay
