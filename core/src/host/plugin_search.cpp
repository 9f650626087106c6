#include "host/plugin_search.hpp"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "host/plugin_entry.hpp"
#include "host/probe.hpp"
#include "patchbay/abi.h"

namespace patchbay::host {

namespace fs = std::filesystem;

void PluginSearch::add_folder(const fs::path& folder, Whose whose) {
    if (std::error_code error; !fs::is_directory(folder, error)) return;
    if (const std::string fault = fault_of_folder(folder, whose); !fault.empty()) {
        leave_out(folder.string() + ": refused: " + fault, whose);
        spdlog::warn("plugin folder {}", found_.remarks.back());
        return;
    }
    found_.folders.push_back(folder);
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
        files.push_back(at->path());
    if (error) leave_out(folder.string() + ": cannot be listed: " + error.message(), whose);
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files)
        if (file.extension() == ".so") add_library(file, whose);
}

void PluginSearch::add_library(const fs::path& file, Whose whose) {
    const fs::path json = manifest_path(file);
    const std::string again = " (run `patchbay plugin test " + file.string() + "`)";
    std::error_code error;
    if (fs::symlink_status(json, error).type() == fs::file_type::not_found) {
        if (is_no_plugin(file)) return add_remark(file.string() + ": no plugin: it exports no " PB_ENTRY_SYMBOL);
        const std::string refusal = recorded_refusal(file);
        return leave_out(file.string() + ": " +
                             (refusal.empty() ? "not probed yet" : "refused by its probe: " + refusal) + again,
                         whose);
    }
    auto manifest = read_manifest(json);
    if (!manifest)
        leave_out(manifest.error() + again, whose);
    else if (manifest->library != file)
        leave_out(json.string() + ": speaks of " + manifest->library.filename().string() +
                      ", not of the library beside it" + again,
                  whose);
    else if (const std::string open = fault_of_files(file, json, whose); !open.empty())
        leave_out(file.string() + ": refused: " + open, whose);
    else
        found_.manifests.push_back(*std::move(manifest));
}

void PluginSearch::leave_out(std::string remark, Whose whose) {
    if (whose == Whose::kOwn) found_.obstacles.push_back({found_.manifests.size(), remark});
    add_remark(std::move(remark));
}

// The program's own folder is as safe as the program beside it, but for one that a careless chmod opened to all.
std::string PluginSearch::fault_of_folder(const fs::path& folder, Whose whose) {
    if (whose == Whose::kOwn) return trusted_.fault(folder);
    struct stat info {};
    const bool open = stat(folder.c_str(), &info) == 0 && (info.st_mode & S_IWOTH);
    return open ? "all users can write to it (chmod o-w)" : "";
}

std::string PluginSearch::fault_of_files(const fs::path& library, const fs::path& json, Whose whose) {
    if (whose == Whose::kShipped) return "";
    const std::string fault = trusted_.fault(library);
    return fault.empty() ? trusted_.fault(json) : fault;
}

Result<FoundPlugins> find_plugins(const std::vector<fs::path>& plugin_dirs) {
    using Whose = PluginSearch::Whose;
    PluginSearch search;
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    const fs::path shipped = self.empty() ? "" : self.parent_path().parent_path() / "lib" / "patchbay" / "plugins";
    const auto whose = [&](const fs::path& dir) {
        std::error_code ignored;
        return fs::equivalent(dir, shipped, ignored) ? Whose::kShipped : Whose::kOwn;
    };
    for (const fs::path& dir : plugin_dirs) {
        if (!fs::is_directory(dir, error))
            return fail(StatusCode::kNotFound, "--plugin-dir " + dir.string() + " is not a folder");
        search.add_folder(dir, whose(dir));
    }
    if (const char* list = std::getenv("PATCHBAY_PLUGIN_PATH")) {
        std::string_view rest = list;
        while (!rest.empty()) {
            const size_t colon = rest.find(':');
            if (const fs::path dir = rest.substr(0, colon); fs::is_directory(dir, error))
                search.add_folder(dir, whose(dir));
            else if (!dir.empty())
                search.add_remark(dir.string() + ": no folder, though PATCHBAY_PLUGIN_PATH names it");
            rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
        }
    }
    if (!shipped.empty()) search.add_folder(shipped, Whose::kShipped);
    return search.take();
}

}  // namespace patchbay::host
