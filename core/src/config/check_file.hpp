// `config check | show | schema` for both kinds of files. Engine configurations are checked here; an experiment (a
// file with a `workload`) by the functions that the experiment module passes in.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/document.hpp"
#include "config/load.hpp"
#include "config/table.hpp"
#include "host/registry.hpp"

namespace patchbay::config {

struct Checked {
    std::string summary;               // one line: "3 variants, 5 repeats, 200 requests"
    Node effective;                    // for `config show`
    std::vector<std::string> warnings;
};

struct ExperimentReader { // both empty: experiments are refused
    std::function<Result<Checked>(const Document&, const host::Registry&)> check;
    std::vector<KeyInfo> keys; // its own top-level keys, beside the engine's
};

bool is_experiment(const Node& root); // has `workload` or `variants`
Result<Checked> check_file(const std::filesystem::path&, const host::Registry&, const ExperimentReader& = {});

// JSON Schema (draft 2020-12) of an engine configuration, and of an experiment where `experiment_keys` are given.
std::string json_schema(const host::Registry&, const std::vector<KeyInfo>& experiment_keys = {});

// Valid YAML of an effective tree, each value's origin behind it as a comment. Reading it gives the same values.
std::string show_yaml(const Node& effective);
// {"values": {…}, "origins": {"engine.max_num_seqs": "demo.yaml:5:17", …}}
std::string show_json(const Node& effective);

}  // namespace patchbay::config
