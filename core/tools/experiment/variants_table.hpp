// The keys `variants` and `factors`, and what a variant may change beside the engine's keys: its workload, its warm-up
// and the noise of its simulation.
#pragma once
#include <vector>

#include "config/table.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

inline constexpr size_t kMaxVariants = 256;

config::Table<Warmup> warmup_table();
config::Table<Jitter> jitter_table();

std::vector<VariantSpec> read_variants(const config::Node&, config::Faults&);
std::vector<VariantSpec> read_factors(const config::Node&, config::Faults&);
// Those of a file with faults, as far as they can be read.
std::vector<VariantSpec> readable_variants(const config::Node& document);

// Once all else is read: gives each variant the workload, the warm-up and the noise that hold for it.
void complete_variants(const config::Node& document, ExperimentSpec&, config::Faults&);

}  // namespace patchbay::experiment
