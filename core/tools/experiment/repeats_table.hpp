// `repeats:` of an experiment: a number, or auto, with what is to be seen.
#pragma once
#include <string>

#include "config/table.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

config::KeyInfo repeats_key();
void read_repeats(const config::Node& given, ExperimentSpec&, config::Faults&);
// "10 repeats", "10 to 50 repeats"
std::string repeats_text(const ExperimentSpec&);

}  // namespace patchbay::experiment
