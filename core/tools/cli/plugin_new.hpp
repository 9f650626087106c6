// patchbay plugin new: a folder with a plugin that builds, from the templates of its kind.
#pragma once
#include <string>

#include "base/result.hpp"

namespace patchbay::cli {

struct NewPlugin {
    std::string kind, name, language = "cpp", folder; // folder: that is made; empty: the name
};

// Writes the files and prints their paths. Refuses a kind, language or name that it cannot use, and a folder that has
// files.
Result<> write_new_plugin(const NewPlugin&);

}  // namespace patchbay::cli
