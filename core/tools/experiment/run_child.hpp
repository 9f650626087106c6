// The process of one run, or of a trial of one variant: it takes its job from the experiment that started it, and a
// plugin that ends it, or does not return, ends nothing else.
#pragma once
#include <functional>

#include "experiment/run_control.hpp"

namespace patchbay::experiment {

// Serves the socket kRunFd of run_wire.hpp; the exit code of the process. interrupted: the parent wants it to end.
int serve_run(const std::function<bool()>& interrupted, const MakeRunControl&);

}  // namespace patchbay::experiment
