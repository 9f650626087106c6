#include "host/registry.hpp"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/printable.hpp"
#include "base/suggest.hpp"
#include "host/inner_devices.hpp"
#include "host/library.hpp"
#include "host/probe.hpp"
#include "host/private_copy.hpp"

namespace patchbay::host {

namespace fs = std::filesystem;

Result<Registry> Registry::open(const std::vector<fs::path>& plugin_dirs, Unusable unusable) {
    Registry registry;
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
        registry.scan(dir, whose(dir));
    }
    if (const char* list = std::getenv("PATCHBAY_PLUGIN_PATH")) {
        std::string_view rest = list;
        while (!rest.empty()) {
            const size_t colon = rest.find(':');
            if (const fs::path dir = rest.substr(0, colon); fs::is_directory(dir, error))
                registry.scan(dir, whose(dir));
            else if (!dir.empty())
                registry.remarks_.push_back(dir.string() + ": no folder, though PATCHBAY_PLUGIN_PATH names it");
            rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
        }
    }
    if (!shipped.empty()) registry.scan(shipped, Whose::kShipped);
    if (unusable == Unusable::kIsLeftOut) registry.obstacles_.clear();
    return registry;
}

void Registry::leave_out(std::string remark, Whose whose) {
    if (whose == Whose::kOwn) obstacles_.push_back({manifests_.size(), remark});
    remarks_.push_back(std::move(remark));
}

// The program's own folder is as safe as the program beside it, but for one that a careless chmod opened to all.
std::string Registry::fault_of_files(const fs::path& library, const fs::path& json, Whose whose) {
    if (whose == Whose::kShipped) return "";
    const std::string fault = trusted_.fault(library);
    return fault.empty() ? trusted_.fault(json) : fault;
}

void Registry::scan(const fs::path& folder, Whose whose) {
    struct stat info {};
    if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return;
    const std::string fault = whose == Whose::kOwn          ? trusted_.fault(folder)
                              : (info.st_mode & S_IWOTH) ? "all users can write to it (chmod o-w)"
                                                         : "";
    if (!fault.empty()) {
        leave_out(folder.string() + ": refused: " + fault, whose);
        spdlog::warn("plugin folder {}", remarks_.back());
        return;
    }
    folders_.push_back(folder);
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
        files.push_back(at->path());
    if (error) leave_out(folder.string() + ": cannot be listed: " + error.message(), whose);
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
        if (file.extension() != ".so") continue;
        const fs::path json = manifest_path(file);
        const std::string again = " (run `patchbay plugin test " + file.string() + "`)";
        if (fs::symlink_status(json, error).type() == fs::file_type::not_found) {
            const std::string refusal = recorded_refusal(file);
            leave_out(file.string() + ": " +
                          (refusal.empty() ? "not probed yet" : "refused by its probe: " + refusal) + again,
                      whose);
            continue;
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
            manifests_.push_back(*std::move(manifest));
    }
}

std::string Registry::fault_of(const Manifest& m) {
    const auto sha256 = file_sha256(m.library);
    const std::string again = " (run `patchbay plugin test " + m.library.string() + "`)";
    if (!sha256) return m.library.string() + ": " + sha256.error();
    if (*sha256 != m.sha256) return m.library.string() + ": changed since it was probed" + again;
    const std::string contract = contract_fault(m);
    return contract.empty() ? "" : m.library.string() + ": " + contract;
}

Registry Registry::restricted_to(AllowedPlugins allowed) const {
    Registry out = *this;
    out.allowed_ = std::move(allowed);
    return out;
}

std::string Registry::disallowed(const Manifest& m) const {
    return allowed_ ? allowed_->fault_of(m.library, m.sha256) : "";
}

std::vector<std::string> Registry::names(std::string_view kind) const {
    std::vector<std::string> out;
    for (const Manifest& m : manifests_)
        for (const ComponentManifest& c : m.components)
            if (c.kind == kind && std::find(out.begin(), out.end(), c.name) == out.end()) out.push_back(c.name);
    std::sort(out.begin(), out.end());
    return out;
}

const ComponentManifest* Registry::first(std::string_view kind, std::string_view name) const {
    for (const Manifest& m : manifests_)
        for (const ComponentManifest& c : m.components)
            if (c.kind == kind && c.name == name) return &c;
    return nullptr;
}

Result<const ComponentManifest*> Registry::find(std::string_view kind, std::string_view name) const {
    if (const ComponentManifest* found = first(kind, name)) {
        const auto place = static_cast<size_t>(plugin_of(*found) - manifests_.data());
        if (const std::string fault = disallowed(*plugin_of(*found)); !fault.empty()) return fail(fault);
        if (obstacles_.empty() || obstacles_.front().before > place) return found;
        return fail(obstacles_.front().reason +
                    "; no plugin of another folder takes its place: mend it, or move it away");
    }
    const auto known = names(kind);
    const std::string text = "no " + std::string(kind) + " '" + printable(name) + "'";
    const std::string file = "/" + std::string(kind) + "-" + std::string(name) + ".so: ";
    for (const std::string& remark : remarks_)
        if (remark.find(file) != std::string::npos) return fail(StatusCode::kNotFound, text + ": " + remark);
    const std::string left_out = obstacles_.empty() ? "" : "; left out: " + obstacles_.front().reason;
    const std::string guess = did_you_mean(name, known);
    if (!guess.empty()) return fail(StatusCode::kNotFound, text + guess + left_out);
    if (known.empty())
        return fail(StatusCode::kNotFound, text + ": no " + std::string(kind) +
                    " is installed in the folders that `patchbay plugin list` names" + left_out);
    std::string list;
    for (const std::string& n : known) list += (list.empty() ? "" : ", ") + n;
    return fail(StatusCode::kNotFound, text + " (there are: " + list + ")" + left_out);
}

const Manifest* Registry::plugin_of(const ComponentManifest& component) const {
    for (const Manifest& m : manifests_)
        if (!m.components.empty() && &component >= m.components.data() &&
            &component < m.components.data() + m.components.size())
            return &m;
    return nullptr;
}

Result<std::string> Registry::model_for(std::string_view architecture) const {
    std::set<std::string> known; // a plugin may be in two folders
    for (const Manifest& m : manifests_)
        for (const ComponentManifest& c : m.components)
            for (const std::string& a : c.architectures) {
                if (a == architecture) return c.name;
                known.insert(a);
            }
    std::string list;
    for (const std::string& a : known) list += (list.empty() ? "" : ", ") + a;
    return fail(StatusCode::kUnsupported, "no model plugin serves architecture '" + printable(architecture) + "'" +
                (architecture.empty() ? " (config.json has no 'architectures')" : "") +
                " (there are: " + (list.empty() ? "none" : list) + ")" +
                (obstacles_.empty() ? "" : "; left out: " + obstacles_.front().reason));
}

template <class Table>
Result<Typed<Table>> Registry::make(std::string_view kind, const std::string& name, const Settings& settings,
                                    const Services& services) const {
    if constexpr (std::is_same_v<Table, pb_device>) { // it may stand before others
        if (!services.devices) {
            const auto inner = std::make_shared<InnerDevices>(*this, services);
            Services with_inner = services;
            with_inner.devices = &inner->service();
            PB_TRY(Device device, make<Table>(kind, name, settings, with_inner));
            device.component->keep(inner);
            return device;
        }
    }
    PB_TRY(const ComponentManifest* component, find(kind, name));
    const Manifest& plugin = *plugin_of(*component);
    PB_TRY(auto library, Library::open(plugin.library, plugin.sha256));
    const pb_component* type = library->find(kind, name);
    if (!type)
        return fail(plugin.library.string() + ": its manifest promises a " + std::string(kind) + " '" + name +
                    "' that it does not hold");
    Typed<Table> typed;
    PB_TRY(typed.component, Component::create(std::move(library), *type, settings, services));
    typed.table = static_cast<const Table*>(type->vtable);
    return typed;
}

#define PB_MAKE(id, word, Type)                                                                                    \
    Result<Type> Registry::word(const std::string& name, const Settings& settings, const Services& services) const { \
        return make<pb_##word>(#word, name, settings, services);                                                   \
    }
PB_EACH_KIND(PB_MAKE)
#undef PB_MAKE

Identity Registry::identity(const Component& c) {
    Identity out{kind_word(c.type().kind), c.type().name, c.type().version, {}, {}, {}};
    if (const Library* const library = c.library()) {
        out.sha256 = library->sha256();
        out.build = library->plugin().build;
        out.path = library->path().string();
    }
    return out;
}

}  // namespace patchbay::host
