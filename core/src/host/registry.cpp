#include "host/registry.hpp"

#include <algorithm>
#include <set>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "base/suggest.hpp"
#include "base/words.hpp"
#include "host/inner_devices.hpp"
#include "host/library.hpp"
#include "host/private_copy.hpp"

namespace patchbay::host {

namespace fs = std::filesystem;

Result<Registry> Registry::open(const std::vector<fs::path>& plugin_dirs, Unusable unusable) {
    Registry registry;
    PB_TRY(registry.found_, find_plugins(plugin_dirs));
    if (unusable == Unusable::kIsLeftOut) registry.found_.obstacles.clear();
    return registry;
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
    for (const Manifest& m : found_.manifests)
        for (const ComponentManifest& c : m.components)
            if (c.kind == kind && std::find(out.begin(), out.end(), c.name) == out.end()) out.push_back(c.name);
    std::sort(out.begin(), out.end());
    return out;
}

const ComponentManifest* Registry::first(std::string_view kind, std::string_view name) const {
    for (const Manifest& m : found_.manifests)
        for (const ComponentManifest& c : m.components)
            if (c.kind == kind && c.name == name) return &c;
    return nullptr;
}

Result<const ComponentManifest*> Registry::find(std::string_view kind, std::string_view name) const {
    if (const ComponentManifest* found = first(kind, name)) {
        const auto place = static_cast<size_t>(plugin_of(*found) - found_.manifests.data());
        if (const std::string fault = disallowed(*plugin_of(*found)); !fault.empty()) return invalid(fault);
        if (found_.obstacles.empty() || found_.obstacles.front().before > place) return found;
        return invalid(found_.obstacles.front().reason +
                       "; plugins in later folders are not used instead: fix or remove it");
    }
    const auto known = names(kind);
    const std::string text = "no " + std::string(kind) + " '" + printable(name) + "'";
    const std::string file = "/" + std::string(kind) + "-" + std::string(name) + ".so: ";
    for (const std::string& remark : found_.remarks)
        if (remark.find(file) != std::string::npos) return fail(StatusCode::kNotFound, text + ": " + remark);
    const std::string left_out = found_.obstacles.empty() ? "" : "; left out: " + found_.obstacles.front().reason;
    const std::string guess = did_you_mean(name, known);
    if (!guess.empty()) return fail(StatusCode::kNotFound, text + guess + left_out);
    if (known.empty())
        return fail(StatusCode::kNotFound, text + ": no " + std::string(kind) +
                    " is installed in the folders that `patchbay plugin list` names" + left_out);
    return fail(StatusCode::kNotFound, text + " (there are: " + joined(known) + ")" + left_out);
}

const Manifest* Registry::plugin_of(const ComponentManifest& component) const {
    for (const Manifest& m : found_.manifests)
        if (!m.components.empty() && &component >= m.components.data() &&
            &component < m.components.data() + m.components.size())
            return &m;
    return nullptr;
}

Result<std::string> Registry::model_for(std::string_view architecture) const {
    std::set<std::string> known; // a plugin may be in two folders
    for (const Manifest& m : found_.manifests)
        for (const ComponentManifest& c : m.components)
            for (const std::string& a : c.architectures) {
                if (a == architecture) return c.name;
                known.insert(a);
            }
    return fail(StatusCode::kUnsupported, "no model plugin serves architecture '" + printable(architecture) + "'" +
                (architecture.empty() ? " (config.json has no 'architectures')" : "") +
                " (there are: " + (known.empty() ? "none" : joined({known.begin(), known.end()})) + ")" +
                (found_.obstacles.empty() ? "" : "; left out: " + found_.obstacles.front().reason));
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
        return invalid(plugin.library.string() + ": its manifest promises a " + std::string(kind) + " '" + name +
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
