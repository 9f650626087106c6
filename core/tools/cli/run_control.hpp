// Live control of the runs of an experiment: what experiments ask for, by serve::LoopControl.
#pragma once
#include "experiment/run_control.hpp"

namespace patchbay::cli {

// None of simulated runs unless an address is named: they are over before they could be looked at.
Result<std::unique_ptr<experiment::RunControl>> make_run_control(const experiment::ControlledRun&);

}  // namespace patchbay::cli
