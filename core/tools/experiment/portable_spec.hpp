// An experiment's document as it is recorded: it means the same in whatever folder it is written to a file again.
#pragma once
#include "config/document.hpp"
#include "experiment/spec.hpp"
#include "host/registry.hpp"

namespace patchbay::experiment {

// With its name in it, and with absolute paths where it names files that are there.
config::Node portable(const ExperimentSpec&, const host::Registry&);

}  // namespace patchbay::experiment
