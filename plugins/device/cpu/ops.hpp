// What the ops of a step work with: the machine, memory between two kernels, other ranks, and the step's fault.
#pragma once
#include "kernels/cpu.hpp"
#include "patchbay/sdk/op_checks.hpp"
#include "patchbay/sdk/step_fault.hpp"
#include "rank_connection.hpp"

namespace patchbay {

class OpContext {
  public:
    OpContext(const kernels::Machine& machine, RankConnection& connection, StepFault& fault)
        : machine_(machine), connection_(connection), fault_(fault) {}

    // As sdk/checked_ops.hpp wants them.
    OpChecks op_checks() const;
    bool faulty() const { return fault_.faulty(); }
    void set_fault(std::string text) noexcept { fault_.set_fault(std::move(text)); }

    const kernels::Machine& machine() const { return machine_; }
    kernels::Scratch& expert_rows() { return expert_rows_; }
    kernels::Scratch& mlp_rows() { return mlp_rows_; }
    RankConnection& connection() { return connection_; }

  private:
    const kernels::Machine& machine_;
    RankConnection& connection_;
    StepFault& fault_;
    kernels::Scratch expert_rows_, mlp_rows_;
};

pb_ops cpu_ops(OpContext&);      // ops.cpp
void add_collectives(pb_ops&);   // collectives.cpp
void add_recurrent_ops(pb_ops&); // recurrent_ops.cpp

}  // namespace patchbay
