// From an experiment's YAML to its specification; every fault has its file, line and column. docs/experiments.md lists
// the keys. Used by patchbay run and by patchbay config.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/document.hpp"
#include "config/table.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

// The failure lists all faults, a line each. Keys of the engine are left to the engine's reader.
Result<ExperimentSpec> load_spec(const std::filesystem::path& file);
Result<ExperimentSpec> spec_from(const config::Node& document, const std::string& name);

// By its keys; every other file is of an engine.
bool is_experiment(const config::Node& document);

// A fault for each file that it names and that is not there: found before anything is run.
void check_inputs(const config::Node& document, config::Faults&);

// "experiments/quickstart/experiment.yaml" → "quickstart"; "sweep.yaml" → "sweep".
std::string name_of_file(const std::filesystem::path& file);
const std::vector<config::KeyInfo>& experiment_keys(); // top-level keys that are not the engine's

}  // namespace patchbay::experiment
