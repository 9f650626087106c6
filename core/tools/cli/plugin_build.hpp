// patchbay plugin build: a plugin of one source file, compiled with the flags of add_plugin() and probed.
#pragma once
#include <string>

#include "base/result.hpp"

namespace patchbay::cli {

struct PluginSource {
    std::string file, folder; // folder: of the library; empty: that of the file
};

// Writes FOLDER/<stem>.so and its manifest. Fails where there is no compiler, where it fails (what it says goes to
// standard error), and with the first check that the plugin does not pass.
Result<> build_plugin(const PluginSource&);

}  // namespace patchbay::cli
