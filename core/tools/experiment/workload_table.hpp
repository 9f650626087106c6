// The keys of `workload`, and what they have to keep among one another.
#pragma once
#include "config/table.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

config::Table<WorkloadSpec> workload_table();
// Once the table has read `given`: defaults that follow from other keys, and faults between keys.
void finish_workload(const config::Node& given, WorkloadSpec&, config::Faults&);

}  // namespace patchbay::experiment
