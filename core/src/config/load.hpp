// From YAML and flags to EngineConfig, with where each value came from. Used by the engine's callers: generate, run,
// config, tests. A variant of an experiment is merge(base document, expand_dotted(patch)), loaded from the node.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/document.hpp"
#include "config/engine_config.hpp"
#include "config/table.hpp"
#include "host/registry.hpp"

namespace patchbay::config {

struct Override {          // a flag that sets a key
    std::string path;      // dotted: "engine.max_num_seqs"
    std::string value;     // as on the command line; in brackets ([…], {…}) YAML
    std::string flag;      // "--max-num-seqs"
};
using Overrides = std::vector<Override>;

// Checks the value alone: type and range. Whether a folder or a plugin exists is checked when all is loaded.
Result<> check_override(const Override&);

struct Loaded {
    EngineConfig config;
    Node effective;                    // every key, defaults and plugins' own included, each with its origin
    std::vector<std::string> warnings; // "file:line:column: text": what works but can hardly be meant
};

// An empty path: the defaults, under the overrides. The failure holds every fault of the file, one a line.
Result<Loaded> load_engine_config(const std::filesystem::path&, const host::Registry&, const Overrides& = {});
// From a tree that load_document() or merge() made. Holds engine keys only; see engine_part().
Result<Loaded> load_engine_config(const Node& document, const host::Registry&, const Overrides& = {});

// Keys of the section `model:`, dotted, as text. A `path` that ends in .yaml or .yml is a file with such a section, as
// in configs/models; the other keys go before its own.
Result<ModelSettings> model_settings(const std::map<std::string, std::string>& keys);

// The other way: a tree that loads as this configuration does, with no value left out.
Node document_of(const EngineConfig&, const host::Registry&);

// An experiment file holds the engine's top-level keys beside its own: these are the engine's, and the part of a tree
// that they make up. Give engine_keys() to Table::leave() of a table that reads the rest.
std::vector<std::string> engine_keys();
std::vector<KeyInfo> engine_sections(); // the same, with the keys of the sections; plugins' own are left out
Node engine_part(const Node& document);

// The declared keys: for documentation, `config schema` and its tests. The registry must outlive the table.
Table<EngineConfig> engine_config_table(const host::Registry&);

}  // namespace patchbay::config
