#include "cli/plugin_dirs.hpp"

#include "base/printable.hpp"

namespace patchbay::cli {

void add_plugin_dirs(CLI::App& app, std::vector<std::string>& dirs) {
    app.add_option("--plugin-dir", dirs, "folder with plugins, searched first")->allow_extra_args(false);
}

Result<host::Registry> registry_of(const std::vector<std::string>& plugin_dirs) {
    return in_one_line(host::Registry::open({plugin_dirs.begin(), plugin_dirs.end()}));
}

std::string left_out(const host::Registry& registry) {
    const std::string shipped = registry.folders().empty() ? "" : registry.folders().back().string(); // searched last
    for (const std::string& remark : registry.remarks())
        if (shipped.empty() || !remark.starts_with(shipped)) return "; left out: " + remark;
    return "";
}

}  // namespace patchbay::cli
