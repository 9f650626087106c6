// What an experiment would run, for people: variants, requests, tokens, order.
#pragma once
#include <string>

#include "experiment/prepared_variants.hpp"
#include "experiment/spec.hpp"
#include "experiment/workloads.hpp"

namespace patchbay::experiment {

// Lines. The variants were tried out.
std::string outline(const ExperimentSpec&, const PreparedVariants&, const Workloads&);

}  // namespace patchbay::experiment
