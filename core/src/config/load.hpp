// From a YAML document to an EngineConfig, with every value's origin. Used by generate, run and config.
#pragma once
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/document.hpp"
#include "config/engine_config.hpp"
#include "config/reader.hpp"
#include "host/registry.hpp"

namespace patchbay::config {

struct Override { // a flag: {"engine.max_num_seqs", "8", "--max-num-seqs"}
    std::string path, value, flag;
};
using Overrides = std::vector<Override>;

struct Loaded {
    EngineConfig config;
    std::vector<Effective> effective; // every key, plugins' defaults among them, in order of declaration
};

// file empty: defaults and overrides only. The failure lists all faults, a line each.
Result<Loaded> load_engine_config(const std::filesystem::path& file, const host::Registry&, const Overrides&);

// The same from a document. Top-level keys in `elsewhere` belong to somebody else (an experiment) and are passed over.
Result<Loaded> engine_config_from(const Node& document, const host::Registry&, const std::set<std::string>& elsewhere = {});

// Every key of an engine's configuration, in order; plugins' own keys are in their manifests.
std::vector<Declared> engine_keys();

}  // namespace patchbay::config
