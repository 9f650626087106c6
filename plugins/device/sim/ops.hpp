// What the ops work with: the time that they charge and the fault that ends their step.
#pragma once
#include "patchbay/sdk/op_checks.hpp"
#include "step_faults.hpp"
#include "step_time.hpp"

namespace patchbay {

class OpContext {
  public:
    OpContext(StepTime& time, StepFaults& faults, pb_dtype activation_dtype)
        : time_(time), faults_(faults), activation_dtype_(activation_dtype) {}

    // As sdk/checked_ops.hpp wants them.
    OpChecks op_checks() const;
    bool faulty() const { return faults_.faulty(); }
    void set_fault(std::string text) noexcept { faults_.set_fault(std::move(text)); }

    pb_dtype activation_dtype() const { return activation_dtype_; }
    const Hardware& hardware() const { return time_.hardware(); }
    uint32_t ranks() const { return ranks_; }
    void set_ranks(uint32_t ranks) { ranks_ = ranks; }
    void charge(const Work& work) noexcept { time_.charge(work); } // with one launch

  private:
    StepTime& time_;
    StepFaults& faults_;
    const pb_dtype activation_dtype_;
    uint32_t ranks_ = 1;
};

pb_ops sim_ops(OpContext&);
void add_collectives(pb_ops&);

}  // namespace patchbay
