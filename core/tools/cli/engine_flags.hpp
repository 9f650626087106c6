// The flags of an engine's configuration, alike in every command that makes one engine.
#pragma once
#include <CLI/CLI.hpp>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.hpp"
#include "host/registry.hpp"

namespace patchbay::cli {

// Flags that set keys of the configuration: they appear in `config show` as what they are.
class KeyFlags {
  public:
    KeyFlags(CLI::App& app, std::shared_ptr<config::Overrides> overrides)
        : app_(app), overrides_(std::move(overrides)) {}

    // A value that the key never takes is bad usage.
    void operator()(const char* flag, const char* path, const char* description) const {
        const auto take = [all = overrides_, path, flag](const std::string& value) {
            all->push_back({path, value, flag});
            if (const auto checked = config::check_override(all->back()); !checked)
                throw CLI::ValidationError(checked.error());
        };
        app_.add_option_function<std::string>(flag, take, description);
    }

  private:
    CLI::App& app_;
    std::shared_ptr<config::Overrides> overrides_;
};

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
// To the log. Of the command itself: ranks load the same configuration.
void print_warnings(const config::Loaded&);
Result<config::ParallelSettings> parallel_of(const EngineFlags&);

}  // namespace patchbay::cli
