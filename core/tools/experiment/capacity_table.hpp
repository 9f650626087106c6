// The keys `slo` and `capacity`.
#pragma once
#include "config/table.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

config::Table<Slo> slo_table();
// `objective`: of the experiment, which holds where the search has none of its own.
std::optional<CapacitySearch> read_capacity(const config::Node&, const Slo& objective, config::Faults&);

}  // namespace patchbay::experiment
