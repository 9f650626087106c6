// --plugin-dir of every command that needs plugins, and what these commands find there.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "host/registry.hpp"

namespace patchbay::cli {

void add_plugin_dirs(CLI::App& app, std::vector<std::string>& dirs);
Result<host::Registry> registry_of(const std::vector<std::string>& plugin_dirs); // an error is one line

// For the end of a message that something was not found: what may be in a library that cannot be used. "; left out:
// mine/a.so: not probed yet (run …)", of the first such library outside the folder of the shipped plugins, or empty.
std::string left_out(const host::Registry&);

}  // namespace patchbay::cli
