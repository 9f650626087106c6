// An experiment as `config show` prints it: every value in effect, in a file that asks the same of the same engines.
#pragma once
#include <functional>

#include "config/load.hpp"
#include "experiment/spec.hpp"
#include "host/registry.hpp"

namespace patchbay::cli {

// Called with each configuration before it is shown; may add origins of its values.
using Explain = std::function<void(config::Loaded&)>;

config::Node shown_experiment(const experiment::ExperimentSpec&, const host::Registry&, const Explain&);

}  // namespace patchbay::cli
