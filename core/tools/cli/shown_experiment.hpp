// An experiment as `config show` prints it: every value in effect, in a file that asks the same of the same engines.
#pragma once
#include "config/check_file.hpp"
#include "experiment/spec.hpp"
#include "host/registry.hpp"

namespace patchbay::cli {

config::Node shown_experiment(const experiment::ExperimentSpec&, const host::Registry&, const config::Explain&);

}  // namespace patchbay::cli
