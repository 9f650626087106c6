// Which plugins lie in which folders, by their manifests: no code of theirs runs. Used by Registry.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "host/manifest.hpp"
#include "host/trusted_files.hpp"

namespace patchbay::host {

struct FoundPlugins {
    struct Obstacle { // a library of an own folder, or a whole one, that cannot be used
        size_t before; // manifests that come earlier in the search order
        std::string reason;
    };

    std::vector<std::filesystem::path> folders; // in search order, as all of them
    std::vector<Manifest> manifests;
    std::vector<std::string> remarks; // folders and libraries left out
    std::vector<Obstacle> obstacles;
};

class PluginSearch {
  public:
    enum class Whose { kOwn, kShipped }; // a folder: the user's, or the program's, which is trusted as the program is

    // In the order of the calls.
    void add_folder(const std::filesystem::path&, Whose);
    void add_remark(std::string remark) { found_.remarks.push_back(std::move(remark)); }
    FoundPlugins take() { return std::move(found_); }

  private:
    void add_library(const std::filesystem::path&, Whose);
    void leave_out(std::string remark, Whose);
    std::string fault_of_folder(const std::filesystem::path&, Whose);
    std::string fault_of_files(const std::filesystem::path& library, const std::filesystem::path& json, Whose);

    FoundPlugins found_;
    TrustedFiles trusted_;
};

// In the folders where Registry::open() looks.
Result<FoundPlugins> find_plugins(const std::vector<std::filesystem::path>& plugin_dirs);

}  // namespace patchbay::host
