// The flags of an engine's configuration, alike in every command that makes one engine.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cli/key_flags.hpp"
#include "host/registry.hpp"

namespace patchbay::cli {

struct EngineFlags {
    std::string config_file;
    std::vector<std::string> plugin_dirs;
    config::Overrides overrides;
};

// --config, --plugin-dir and a flag for each key that can be set. The flags live as long as the app.
void add_engine_flags(CLI::App&, const std::shared_ptr<EngineFlags>&);
// Some of the flags for keys: "--threads".
void add_key_flags(const KeyFlags&, std::initializer_list<std::string_view> flags);

Result<config::Loaded> load_engine(const EngineFlags&, const host::Registry&);
Result<config::ParallelSettings> parallel_of(const EngineFlags&);

}  // namespace patchbay::cli
