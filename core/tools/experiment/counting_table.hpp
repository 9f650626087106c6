// The keys `by` and `window`: which requests are looked at apart, and which ones are counted.
#pragma once
#include "config/table.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

const char* word_of(ClassKind); // tenant, priority, prompt_length, class
std::vector<ByClass> read_by(const config::Node&, config::Faults&);
void read_window(const config::Node&, ExperimentSpec&, config::Faults&);

}  // namespace patchbay::experiment
