// Whether an engine may load the plugins that it is configured with, before anything of them is loaded. Used by
// `patchbay config check` and by experiments.
#pragma once
#include "config/load.hpp"
#include "host/registry.hpp"

namespace patchbay::execution {

// A fault for each plugin that `allowed_plugins` does not allow, where the file names it. A model that cannot be opened
// is a fault of the run: which plugin would serve it is not known.
void check_allowed_plugins(const config::Loaded&, const host::Registry&, config::Faults&);

}  // namespace patchbay::execution
