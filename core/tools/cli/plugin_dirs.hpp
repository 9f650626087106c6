// --plugin-dir of every command that needs plugins, and what these commands find there.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "host/registry.hpp"

namespace patchbay::cli {

void add_plugin_dirs(CLI::App& app, std::vector<std::string>& dirs);
Result<host::Registry> registry_of(const std::vector<std::string>& plugin_dirs); // an error is one line

}  // namespace patchbay::cli
