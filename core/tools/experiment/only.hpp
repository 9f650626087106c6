// An experiment cut down to some of its variants.
#pragma once
#include <string>
#include <vector>

#include "config/document.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

// The file with only the named variants, in its own order. Where the baseline is not among them, the first is. Fails at
// names that are not there.
Result<config::Node> only(const ExperimentSpec&, const std::vector<std::string>& names);

}  // namespace patchbay::experiment
