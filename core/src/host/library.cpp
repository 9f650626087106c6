#include "host/library.hpp"

#include <boost/dll/shared_library.hpp>

#include "base/crash_report.hpp"
#include "base/plugin_call.hpp"
#include "host/private_copy.hpp"
#include "host/schema.hpp"
#include "patchbay/abi/attention.h"
#include "patchbay/abi/device.h"
#include "patchbay/abi/model.h"
#include "patchbay/abi/proposer.h"
#include "patchbay/abi/sampler.h"
#include "patchbay/abi/scheduler.h"

namespace patchbay::host {

struct Library::Handle {
    boost::dll::shared_library object;
};

Library::~Library() = default;

namespace {

struct Kind {
    const char* id;
    const char* digest;
    uint32_t smallest_table;  // bytes of the vtable that this host must find
};

const Kind* kind_of(std::string_view id) {
    static constexpr Kind kKinds[] = {
        {PB_SCHEDULER, PB_SCHEDULER_DIGEST, sizeof(pb_scheduler)},
        {PB_SAMPLER, PB_SAMPLER_DIGEST, sizeof(pb_sampler)},
        {PB_PROPOSER, PB_PROPOSER_DIGEST, sizeof(pb_proposer)},
        {PB_ATTENTION, PB_ATTENTION_DIGEST, sizeof(pb_attention)},
        {PB_MODEL, PB_MODEL_DIGEST, sizeof(pb_model)},
        {PB_DEVICE, PB_DEVICE_DIGEST, sizeof(pb_device)},
    };
    for (const Kind& k : kKinds)
        if (id == k.id) return &k;
    return nullptr;
}

// Every function that the host calls without asking first must be there.
bool table_is_complete(std::string_view kind, const void* vtable) {
    const auto all = [](auto... f) { return ((f != nullptr) && ...); };
    if (kind == PB_SCHEDULER) return static_cast<const pb_scheduler*>(vtable)->plan;
    if (kind == PB_SAMPLER) {
        const auto* t = static_cast<const pb_sampler*>(vtable);
        return t->device && (t->device == std::string_view("host") ? t->sample != nullptr : all(t->plan, t->enqueue));
    }
    if (kind == PB_PROPOSER) return static_cast<const pb_proposer*>(vtable)->propose;
    if (kind == PB_ATTENTION) {
        const auto* t = static_cast<const pb_attention*>(vtable);
        return all(t->describe, t->bind, t->unbind, t->plan, t->append_kv, t->run);
    }
    if (kind == PB_MODEL) {
        const auto* t = static_cast<const pb_model*>(vtable);
        return all(t->architectures, t->load_config, t->weight_count, t->weight, t->fill, t->kv_spec, t->forward);
    }
    const auto* t = static_cast<const pb_device*>(vtable);
    return all(t->info, t->alloc, t->free, t->to_device, t->to_host, t->prepare, t->release, t->weight_bytes, t->ops,
               t->begin_step, t->end_step, t->copy_page);
}

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
           version_text(PB_ABI_MAJOR, PB_ABI_MINOR);
}

// `digest`: of the kind's header that the component was built with.
LoadFault kind_fault(const std::string& component, std::string_view kind_id, std::string_view digest) {
    const std::string who = "component '" + component + "' ";
    const Kind* kind = kind_of(kind_id);
    if (!kind)
        return {"component.kind", who + "is of kind '" + std::string(kind_id) + "', which this host does not know"};
    if (digest == kind->digest) return {};
    return {"component.digest", who + "was built with another version of patchbay/abi/" + kind_word(kind_id) + ".h (" +
                                    (digest.empty() ? "none" : std::string(digest)) + ", this host has " +
                                    kind->digest + "): build it again"};
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
    m.kind_digest = c.kind_digest;
    m.name = c.name;
    m.version = c.version;
    m.summary = c.summary;
    m.state = c.state ? c.state : "";
    for (uint32_t i = 0; i < c.param_count; ++i) {
        const pb_param& p = c.params[i];
        ParamManifest out;
        out.name = p.name ? p.name : "";
        out.type = p.type >= 0 && p.type < 5 ? kTypes[p.type] : "?";
        out.hot = p.flags & PB_PARAM_HOT;
        if (p.default_value) out.default_value = p.default_value;
        if (p.flags & PB_PARAM_HAS_MIN) out.min = p.min;
        if (p.flags & PB_PARAM_HAS_MAX) out.max = p.max;
        for (const char* const* choice = p.choices; choice && *choice; ++choice) out.choices.emplace_back(*choice);
        out.unit = p.unit ? p.unit : "";
        out.description = p.description ? p.description : "";
        m.params.push_back(std::move(out));
    }
    if (m.kind == "model")
        for (const char* const* a = static_cast<const pb_model*>(c.vtable)->architectures; *a; ++a)
            m.architectures.emplace_back(*a);
    return m;
}

std::string contract_fault(const Manifest& m) {
    if (std::string why = version_fault(m.abi_major, m.abi_minor); !why.empty()) return why;
    for (const ComponentManifest& c : m.components)
        if (LoadFault fault = kind_fault(c.name, c.kind_id, c.kind_digest); !fault.check.empty()) return fault.reason;
    return "";
}

std::vector<LoadFault> check_component(const pb_component* c) {
    if (!c || c->struct_size < sizeof(pb_component))
        return {{"component.complete", "a component's table is missing or too small"}};
    if (!c->kind || !c->name || !c->version || !c->summary || !c->create || !c->destroy || !c->vtable)
        return {{"component.complete", std::string("component '") + (c->name ? c->name : "?") +
                                           "' lacks a kind, name, version, summary, create, destroy or vtable"}};
    const std::string who = std::string("component '") + c->name + "' ";
    if (const LoadFault fault = kind_fault(c->name, c->kind, c->kind_digest ? c->kind_digest : "");
        !fault.check.empty())
        return {fault};
    const Kind* kind = kind_of(c->kind);
    if (!is_word(c->name)) return {{"component.name", who + "has a name that is not [a-z0-9_]+"}};
    if (*static_cast<const uint32_t*>(c->vtable) < kind->smallest_table || !table_is_complete(c->kind, c->vtable))
        return {{"component.vtable", who + "has a vtable with functions missing"}};
    if ((c->state != nullptr) != (c->save != nullptr) || (c->state != nullptr) != (c->load != nullptr))
        return {{"component.state_functions", who + "must have state, save and load, or none of them"}};
    if (c->param_count > 256 || (c->param_count > 0 && !c->params))
        return {{"component.schema", who + "has a broken parameter table"}};
    const ComponentManifest m = describe(*c);
    for (size_t i = 0; i < m.params.size(); ++i) {
        const ParamManifest& p = m.params[i];
        if (p.name.empty() || p.type == "?" || p.description.empty() || p.name == "plugin")
            return {{"component.schema", who + "has a parameter without a name of its own, a type or a description"}};
        for (size_t j = 0; j < i; ++j)
            if (m.params[j].name == p.name) return {{"component.schema", who + "has two parameters '" + p.name + "'"}};
        if (p.default_value)
            if (auto why = check_value(p, *p.default_value))
                return {{"component.schema", who + "has a default that its own schema refuses: " + *why}};
    }
    return {};
}

Result<std::shared_ptr<Library>> Library::open(const std::filesystem::path& path, const std::string& expected,
                                               LoadFault* fault) {
    const auto refuse = [&](std::string check, std::string reason) {
        if (fault) *fault = {check, reason};
        return fail(path.string() + ": " + reason);
    };
    auto copy = private_copy(path);
    if (!copy) return refuse("file.readable", copy.error());
    if (!expected.empty() && expected != copy->sha256)
        return refuse("file.sha256", "its SHA-256 is " + copy->sha256.substr(0, 12) + "…, its manifest says " +
                                         expected.substr(0, 12) +
                                         "… (it was changed after its probe: run `patchbay plugin test " +
                                         path.string() + "`)");
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
        return refuse("file.loads", "the loader refuses it: " + loader_words(e.what(), copy->path.string()));
    }
    report_exit_first();
    if (!lib->handle_->object.has(PB_ENTRY_SYMBOL))
        return refuse("abi.entry", "not a plugin: it exports no " PB_ENTRY_SYMBOL);
    const pb_plugin* p = &lib->handle_->object.get<const pb_plugin>(PB_ENTRY_SYMBOL);
    if (p->magic != PB_MAGIC)
        return refuse("abi.magic", "not a plugin: " PB_ENTRY_SYMBOL " does not begin with the magic number");
    if (const std::string why = version_fault(p->abi_major, p->abi_minor); !why.empty())
        return refuse("abi.version", why);
    if (p->struct_size < sizeof(pb_plugin) || !p->name || !p->version || !p->build ||
        (p->component_count > 0 && !p->components))
        return refuse("abi.complete", "its plugin table is incomplete");
    if (p->component_count == 0 || p->component_count > 256)
        return refuse("abi.complete",
                      "it holds " + std::to_string(p->component_count) + " components, expected 1 to 256");
    lib->plugin_ = p;
    for (uint32_t i = 0; i < p->component_count; ++i)
        if (const auto faults = check_component(p->components[i]); !faults.empty())
            return refuse(faults[0].check, faults[0].reason);
    return lib;
}

const pb_component* Library::find(std::string_view kind, std::string_view name) const {
    for (uint32_t i = 0; i < plugin_->component_count; ++i)
        if (kind == kind_word(plugin_->components[i]->kind) && name == plugin_->components[i]->name)
            return plugin_->components[i];
    return nullptr;
}

}  // namespace patchbay::host
