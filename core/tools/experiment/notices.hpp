// What must be known of an experiment to read its numbers, in a sentence each; empty: there is nothing to say.
#pragma once
#include <string>
#include <vector>

#include "experiment/prepared_variants.hpp"
#include "experiment/run_summary.hpp"
#include "experiment/spec.hpp"
#include "experiment/workloads.hpp"

namespace patchbay::experiment {

std::string interruption_notice(const std::vector<RunSummary>&, uint32_t repeats, const PreparedVariants&);
// Simulated times must not be taken for measured ones.
std::string simulation_notice(const PreparedVariants&);
// Nor texts of given acceptance rates for the model's.
std::string synthetic_notice(const PreparedVariants&);
// Nor is a scheduler without lengths of outputs one that knows them.
std::string oracle_notice(const ExperimentSpec&, const PreparedVariants&);
// Repeats that share rows of a trace, or prompts of a file.
std::string window_notice(const Workloads&, const ExperimentSpec&);
std::string prompts_notice(const Workloads&, uint32_t repeats);
std::string jitter_notice(const ExperimentSpec&, const PreparedVariants&);
std::string clipping_notice(const Workloads&, const ExperimentSpec&, uint32_t repeats);

}  // namespace patchbay::experiment
