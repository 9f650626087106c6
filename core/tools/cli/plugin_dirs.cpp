#include "cli/plugin_dirs.hpp"

#include "base/printable.hpp"

namespace patchbay::cli {

void add_plugin_dirs(CLI::App& app, std::vector<std::string>& dirs) {
    app.add_option("--plugin-dir", dirs, "folder with plugins, searched first")->allow_extra_args(false);
}

Result<host::Registry> registry_of(const std::vector<std::string>& plugin_dirs) {
    return in_one_line(host::Registry::open({plugin_dirs.begin(), plugin_dirs.end()}));
}

}  // namespace patchbay::cli
