// What `config check`, `show` and `schema` do, for both kinds of files. Engine configurations are checked here; an
// experiment (a file with a `workload`) by the function that the caller passes in.
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

struct ShownConfig {
    std::string name; // of a variant; empty: the file as a whole
    Node effective;
};

struct Checked {
    std::string summary;               // one line: "3 variants, 5 repeats, 200 requests"
    std::vector<ShownConfig> configs;  // for `config show`: the whole file, then an experiment's variants
    std::vector<std::string> warnings;
};

// How a file with `workload` or `variants` is checked; empty: experiments are refused.
using CheckExperiment = std::function<Result<Checked>(const Document&, const host::Registry&)>;

// Called with each configuration before it is shown; may add origins of its values.
using Explain = std::function<void(Loaded&)>;

Result<Checked> check_file(const std::filesystem::path&, const host::Registry&, const CheckExperiment& = {},
                           const Explain& = {});

// JSON Schema (draft 2020-12) of an engine configuration, and of an experiment where `experiment_keys` are given.
std::string json_schema(const host::Registry&, const std::vector<KeyInfo>& experiment_keys = {});
// The same for a file with only these keys; and for a map of them, as a part of another schema.
std::string json_schema(const std::string& title, const std::vector<KeyInfo>&);
std::string json_schema_of(const std::vector<KeyInfo>&);

// Valid YAML of an effective tree, each value's origin after it as a comment. Reading it gives the same values.
std::string show_yaml(const Node& effective);
// {"values": {…}, "origins": {"engine.max_num_seqs": "demo.yaml:5:17", …}}
std::string show_json(const Node& effective);

}  // namespace patchbay::config
