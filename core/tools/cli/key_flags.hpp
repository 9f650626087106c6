// Flags that set keys of the configuration: they appear in `config show` as what they are.
#pragma once
#include <CLI/CLI.hpp>
#include <memory>

#include "config/load.hpp"

namespace patchbay::cli {

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

}  // namespace patchbay::cli
