// Other documents that are made of an experiment's.
#pragma once
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/document.hpp"
#include "experiment/spec.hpp"
#include "host/registry.hpp"

namespace patchbay::experiment {

// As it is recorded: it means the same in whatever folder it is written to a file again. With its name in it, and with
// absolute paths where it names files that are there.
config::Node portable(const ExperimentSpec&, const host::Registry&);
// The file with only the named variants, in its own order. Where the baseline is not among them, the first is. Fails at
// names that are not there.
Result<config::Node> only(const ExperimentSpec&, const std::vector<std::string>& names);

}  // namespace patchbay::experiment
