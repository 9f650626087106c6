// The libraries that an engine may load, by the digests of their bytes: `allowed_plugins:` in YAML. What they do not
// allow is refused before any of it is mapped. Used by Registry.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace patchbay::host {

struct AllowedPlugins {
    std::map<std::string, std::vector<std::string>> digests; // of a library's file name: SHA-256, in hexadecimal

    // Why a library with these bytes may not be loaded; empty: it may.
    std::string fault_of(const std::filesystem::path& library, const std::string& sha256) const;
    bool operator==(const AllowedPlugins&) const = default;
};

}  // namespace patchbay::host
