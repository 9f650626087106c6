#include "host/library.hpp"

#include <boost/dll/shared_library.hpp>
#include <cmath>

#include "base/crash_report.hpp"
#include "base/numbers.hpp"
#include "base/plugin_call.hpp"
#include "base/printable.hpp"
#include "host/contract.hpp"
#include "host/plugin_entry.hpp"
#include "host/private_copy.hpp"
#include "host/schema.hpp"
#include "patchbay/abi/model.h"

namespace patchbay::host {

struct Library::Handle {
    boost::dll::shared_library object;
};

Library::~Library() = default;

namespace {

bool is_word(const char* s) {
    if (!s || !*s) return false;
    for (; *s; ++s)
        if (!((*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9') || *s == '_')) return false;
    return true;
}

// What dlopen said, out of what Boost wraps around it; the name of the private copy says nothing to a reader.
std::string loader_words(std::string_view what, const std::string& copy) {
    constexpr std::string_view kBefore = "system message: ";
    if (const size_t at = what.find(kBefore); at != what.npos) what.remove_prefix(at + kBefore.size());
    if (const size_t end = what.rfind("): "); end != what.npos) what = what.substr(0, end);
    if (what.starts_with(copy + ": ")) what.remove_prefix(copy.size() + 2);
    return std::string(what);
}

std::string version_text(unsigned major, unsigned minor) { return std::to_string(major) + "." + std::to_string(minor); }

std::string version_fault(unsigned major, unsigned minor) {
    if (major == PB_ABI_MAJOR && minor <= PB_ABI_MINOR) return "";
    return "built for ABI " + version_text(major, minor) + ", this host speaks " +
           version_text(PB_ABI_MAJOR, PB_ABI_MINOR) +
           (major == PB_ABI_MAJOR ? ": use a newer Patchbay, or build it with the headers of this one"
                                  : ": build it with the headers of this Patchbay");
}

std::string revision_text(std::string_view id, uint32_t theirs, uint32_t ours) {
    return "was built for revision " + std::to_string(theirs) + " of " + std::string(id) + ", this host has revision " +
           std::to_string(ours) + ": build it again";
}

LoadFault kind_fault(const std::string& component, std::string_view kind_id, uint32_t revision) {
    const std::string who = "component '" + component + "' ";
    const ContractPart* const kind = find_kind(kind_id);
    if (!kind)
        return {"component.kind", who + "is of kind '" + std::string(kind_id) + "', which this host does not know"};
    if (revision == kind->revision) return {};
    return {"component.revision", who + revision_text(kind_id, revision, kind->revision)};
}

// Unknown extensions are ignored: their component works without.
LoadFault extension_fault(const std::string& component, const ExtensionManifest& e) {
    const ContractPart* const known = find_extension(e.id);
    if (!known || known->revision == e.revision) return {};
    return {"component.revision", "component '" + component + "' " + revision_text(e.id, e.revision, known->revision)};
}

LoadFault contract_fault_of(const ComponentManifest& c) {
    if (LoadFault fault = kind_fault(c.name, c.kind_id, c.revision); !fault.check.empty()) return fault;
    for (const ExtensionManifest& e : c.extensions)
        if (LoadFault fault = extension_fault(c.name, e); !fault.check.empty()) return fault;
    return {};
}

// An infinite bound leaves its side open, unless it is the wrong infinity.
std::string fault_of_bounds(const pb_param& p) {
    const bool bad_min = (p.flags & PB_PARAM_HAS_MIN) && !(p.min < INFINITY);
    const bool bad_max = (p.flags & PB_PARAM_HAS_MAX) && !(p.max > -INFINITY);
    if (!bad_min && !bad_max) return "";
    return std::string("has a parameter '") + (p.name ? p.name : "?") + "' whose " + (bad_min ? "min" : "max") +
           " is " + number_text(bad_min ? p.min : p.max) + ", expected a number";
}

}  // namespace

std::string kind_word(std::string_view id) {
    if (!id.starts_with("patchbay.")) return std::string(id);
    id.remove_prefix(9);
    return std::string(id.substr(0, id.find('/')));
}

ComponentManifest describe(const pb_component& c) {
    static constexpr const char* kTypes[] = {"bool", "int", "float", "string", "enum"};
    ComponentManifest m;
    m.kind_id = c.kind;
    m.kind = kind_word(c.kind);
    m.revision = c.revision;
    m.name = c.name;
    m.version = c.version;
    m.summary = c.summary;
    m.state = c.state ? c.state : "";
    for (uint32_t i = 0; i < c.param_count; ++i) {
        const pb_param p = param_of(c, i);
        ParamManifest out;
        out.name = p.name ? p.name : "";
        out.type = p.type >= 0 && p.type < 5 ? kTypes[p.type] : "?";
        out.hot = p.flags & PB_PARAM_HOT;
        if (p.default_value) out.default_value = p.default_value;
        if ((p.flags & PB_PARAM_HAS_MIN) && std::isfinite(p.min)) out.min = p.min;  // else none, which is the same
        if ((p.flags & PB_PARAM_HAS_MAX) && std::isfinite(p.max)) out.max = p.max;
        for (const char* const* choice = p.choices; choice && *choice; ++choice) out.choices.emplace_back(*choice);
        out.unit = p.unit ? p.unit : "";
        out.description = p.description ? p.description : "";
        m.params.push_back(std::move(out));
    }
    m.hooks = hooks_of(c);
    for (uint32_t i = 0; i < c.extension_count; ++i) {
        const pb_extension e = extension_of(c, i);
        m.extensions.push_back({e.id, e.revision});
    }
    if (m.kind == "model")
        for (const char* const* a = static_cast<const pb_model*>(c.vtable)->architectures; *a; ++a)
            m.architectures.emplace_back(*a);
    return m;
}

std::string contract_fault(const Manifest& m) {
    if (std::string why = version_fault(m.abi_major, m.abi_minor); !why.empty()) return why;
    for (const ComponentManifest& c : m.components)
        if (LoadFault fault = contract_fault_of(c); !fault.check.empty()) return fault.reason;
    return "";
}

std::optional<LoadFault> check_component(const pb_component* given) {
    constexpr uint32_t kLeast = offsetof(pb_component, vtable) + sizeof(void*);
    if (!given || given->struct_size < kLeast)
        return LoadFault{"component.complete", "a component's table is missing or too small"};
    const OwnComponent own(*given);
    const pb_component* const c = &own.type();
    if (!c->kind || !c->name || !c->version || !c->summary || !c->create || !c->destroy || !given->vtable)
        return LoadFault{"component.complete", std::string("component '") + (c->name ? c->name : "?") +
                                                   "' lacks a kind, name, version, summary, create, destroy or vtable"};
    const std::string who = std::string("component '") + c->name + "' ";
    if (LoadFault fault = kind_fault(c->name, c->kind, c->revision); !fault.check.empty()) return fault;
    if (!is_word(c->name)) return LoadFault{"component.name", who + "has a name that is not [a-z0-9_]+"};
    if (!own.vtable_fault().empty())
        return LoadFault{"component.vtable", who + "has a vtable that " + own.vtable_fault()};
    if ((c->state != nullptr) != (c->save != nullptr) || (c->state != nullptr) != (c->load != nullptr))
        return LoadFault{"component.state_functions", who + "must have state, save and load, or none of them"};
    if (c->param_count > 256 || (c->param_count > 0 && !c->params))
        return LoadFault{"component.schema", who + "has a broken parameter table"};
    if (c->extension_count > 64 || (c->extension_count > 0 && (!c->extensions || !c->extension)))
        return LoadFault{"component.extensions", who + "has a broken list of extensions"};
    for (uint32_t i = 0; i < c->extension_count; ++i)
        if (!extension_of(*c, i).id)
            return LoadFault{"component.extensions", who + "has an extension without an id"};
    for (uint32_t i = 0; i < c->param_count; ++i)
        if (const std::string fault = fault_of_bounds(param_of(*c, i)); !fault.empty())
            return LoadFault{"component.schema", who + fault};
    const ComponentManifest m = describe(*c);
    if (LoadFault fault = contract_fault_of(m); !fault.check.empty()) return fault;
    for (size_t i = 0; i < m.params.size(); ++i) {
        const ParamManifest& p = m.params[i];
        if (p.name.empty() || p.type == "?" || p.description.empty() || p.name == "plugin")
            return LoadFault{"component.schema",
                             who + "has a parameter without a name of its own, a type or a description"};
        for (size_t j = 0; j < i; ++j)
            if (m.params[j].name == p.name)
                return LoadFault{"component.schema", who + "has two parameters '" + p.name + "'"};
        if (p.default_value)
            if (auto why = check_value(p, *p.default_value))
                return LoadFault{"component.schema", who + "has a default that its own schema refuses: " + *why};
    }
    return std::nullopt;
}

Result<std::shared_ptr<Library>> Library::open(const std::filesystem::path& path, const std::string& expected,
                                               LoadFault* fault) {
    const auto refuse = [&](std::string check, std::string reason, StatusCode code = StatusCode::kInvalid) {
        if (fault) *fault = {check, reason};
        return fail(code, path.string() + ": " + reason);
    };
    auto copy = private_copy(path);
    if (!copy) return refuse(file_sha256(path) ? "machine.copy" : "file.readable", copy.error(), copy.code());
    if (!expected.empty() && expected != copy->sha256)
        return refuse("file.sha256", "its SHA-256 is " + copy->sha256.substr(0, 12) + "…, its manifest says " +
                                         expected.substr(0, 12) +
                                         "… (it was changed after its probe: run `patchbay plugin test " +
                                         path.string() + "`)");
    if (const std::string table = unique_table(copy->path); !table.empty())
        return refuse("file.loads", "after a swap it would run with a table of another build (" +
                                        printable(table, 200) + "): build it with -fno-gnu-unique, or put its class "
                                        "into an unnamed namespace");
    std::shared_ptr<Library> lib(new Library);
    lib->path_ = path;
    lib->sha256_ = copy->sha256;
    lib->handle_ = std::make_unique<Handle>();
    const std::string label = "library '" + path.filename().string() + "'";
    try {
        const PluginCall noted(label.c_str(), "load");
        lib->handle_->object.load(copy->path.string(),
                                  boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
    } catch (const std::exception& e) {
        if (const std::string why = mount_fault(copy->path.parent_path()); !why.empty())
            return refuse("machine.exec", why, StatusCode::kFailed);
        return refuse("file.loads", "the loader refuses it: " + loader_words(e.what(), copy->path.string()));
    }
    report_exit_first();
    if (!lib->handle_->object.has(PB_ENTRY_SYMBOL))
        return refuse("abi.entry", "not a plugin: it exports no " PB_ENTRY_SYMBOL);
    const pb_plugin* p = &lib->handle_->object.get<const pb_plugin>(PB_ENTRY_SYMBOL);
    if (p->magic != PB_MAGIC)
        return refuse("abi.magic", "not a plugin: " PB_ENTRY_SYMBOL " does not begin with the magic number");
    if (const std::string why = version_fault(p->abi_major, p->abi_minor); !why.empty())
        return refuse("abi.version", why, StatusCode::kUnsupported);
    constexpr size_t kFirstRelease = offsetof(pb_plugin, components) + sizeof p->components; // later fields may lack
    if (p->struct_size < kFirstRelease || !p->name || !p->version || !p->build ||
        (p->component_count > 0 && !p->components))
        return refuse("abi.complete", "its plugin table is incomplete");
    if (p->component_count == 0 || p->component_count > 256)
        return refuse("abi.complete",
                      "it holds " + std::to_string(p->component_count) + " components, expected 1 to 256");
    lib->plugin_ = p;
    for (uint32_t i = 0; i < p->component_count; ++i)
        if (const auto wrong = check_component(p->components[i])) return refuse(wrong->check, wrong->reason);
    for (uint32_t i = 0; i < p->component_count; ++i) {
        const pb_component& c = *p->components[i];
        if (lib->find(kind_word(c.kind), c.name))
            return refuse("component.name", std::string("it holds component '") + c.name + "' of this kind twice");
        lib->components_.emplace_back(c);
    }
    return lib;
}

const pb_component* Library::find(std::string_view kind, std::string_view name) const {
    for (const OwnComponent& c : components_)
        if (kind == kind_word(c.type().kind) && name == c.type().name) return &c.type();
    return nullptr;
}

}  // namespace patchbay::host
