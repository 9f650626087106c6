#include "config/plugin_slot.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "host/schema.hpp"

namespace patchbay::config {
namespace {

constexpr const char* kNone = "none";

struct Given { // what a slot's YAML says, before any plugin is asked
    std::string plugin;
    Origin plugin_origin;
    Node own = Node::map(); // the plugin's own keys
};

Given split(const Node* given, const std::string& kind, const std::string& default_value, Faults& faults) {
    Given out{default_value, given ? given->origin : Origin{}, Node::map()};
    if (!given) return out;
    out.own.origin = given->origin;
    if (given->kind == NodeKind::kScalar) {
        out.plugin = given->text;
    } else if (given->kind == NodeKind::kMap) {
        if (!given->find("plugin")) out.plugin_origin = Origin{};
        for (const Entry& entry : given->entries) {
            if (entry.key != "plugin") {
                out.own.entries.push_back(entry);
            } else if (entry.value.kind == NodeKind::kScalar) {
                out.plugin = entry.value.text;
                out.plugin_origin = entry.value.origin;
            } else {
                faults.add(entry.value.origin,
                           "'plugin' is " + entry.value.describe() + ", expected the name of a " + kind);
            }
        }
    } else if (given->kind == NodeKind::kList) {
        faults.add(given->origin, "'" + kind + "' is a list, expected the name of a plugin or {plugin: NAME, …}");
    }
    return out;
}

// What a parameter calls a path is looked for beside the file that names it, then in the current directory.
std::string located(const host::ParamManifest& param, const Node& given, Faults& faults) {
    namespace fs = std::filesystem;
    if (param.unit != "path" || given.text.empty() || given.text == param.default_value) return given.text;
    fs::path path(given.text);
    std::error_code error;
    std::string looked;
    if (path.is_relative() && given.origin.kind == Origin::Kind::kFile) {
        const fs::path beside = (fs::path(*given.origin.name).parent_path() / path).lexically_normal();
        if (fs::exists(beside, error)) path = beside;
        else looked = " (looked for " + printable(beside.string()) + ", then in the current directory)";
    }
    if (!fs::exists(path, error))
        faults.add(given.origin, param.name + " " + printable(given.text) + " is not there" + looked);
    return host::absolute_path(path.string());
}

// Why a value is none of the parameter's type, whatever its text. Empty: it may be one.
std::string form_fault(const host::ParamManifest& param, const Node& given) {
    const auto is = [&] { return "'" + printable(param.name) + "' is " + given.describe() + ", expected "; };
    if (given.kind != NodeKind::kScalar) return is() + "one value";
    const ValueType type = param.type == "bool"    ? ValueType::kBool
                           : param.type == "int"   ? ValueType::kInt
                           : param.type == "float" ? ValueType::kFloat
                                                   : ValueType::kString;
    return given.quoted && type != ValueType::kString ? is() + expected_text({.type = type}) : "";
}

Node print_setting(const host::ParamManifest& param, const std::string& value, const Origin& origin) {
    const bool text = param.type == "string" || param.type == "enum";
    return text ? Node::string(value, origin) : Node::scalar(value, origin);
}

// The settings that are in effect, and their tree; faults at the key or value that they are about.
Node read_settings(const Given& given, const host::ComponentManifest& component, host::Settings& settings,
                   Faults& faults) {
    const auto param_of = [&](const std::string& key) {
        return std::find_if(component.params.begin(), component.params.end(),
                            [&](const auto& p) { return p.name == key; });
    };
    host::Settings asked;
    std::set<std::string> of_wrong_form; // they are not asked for, and not missing
    for (const Entry& entry : given.own.entries) {
        const auto param = param_of(entry.key);
        const bool known = param != component.params.end();
        const std::string fault = known ? form_fault(*param, entry.value) : "";
        if (fault.empty()) {
            asked[entry.key] = known ? located(*param, entry.value, faults) : entry.value.text;
        } else {
            faults.add(entry.value.origin, fault);
            of_wrong_form.insert(entry.key);
        }
    }
    for (const host::SettingFault& fault : host::check_settings(component, asked)) {
        const auto entry = std::find_if(given.own.entries.begin(), given.own.entries.end(),
                                        [&](const Entry& e) { return e.key == fault.key; });
        if (entry == given.own.entries.end()) faults.add(given.plugin_origin, fault.text);
        else if (!of_wrong_form.contains(fault.key))
            faults.add(param_of(fault.key) == component.params.end() ? entry->key_origin : entry->value.origin,
                       fault.text);
    }
    settings = host::with_defaults(component, asked);
    Node tree = Node::map(given.own.origin);
    tree.set("plugin", Node::string(given.plugin, given.plugin_origin));
    for (const host::ParamManifest& param : component.params) { // in the order of the schema
        const Node* own = given.own.find(param.name);
        if (const auto at = settings.find(param.name); at != settings.end())
            tree.set(param.name, print_setting(param, at->second, own ? own->origin : Origin{}));
    }
    return tree;
}

Node read_slot(const Node* node, const std::string& kind, const host::Registry& registry, PluginChoice& out,
               Faults& faults) {
    const Given given = split(node, kind, out.plugin, faults);
    out.plugin = given.plugin;
    const auto component = registry.find(kind, given.plugin);
    if (component) return read_settings(given, **component, out.settings, faults);
    faults.add(given.plugin_origin, component.error());
    return Node::map();
}

KeyInfo slot_info(const std::string& kind, const host::Registry& registry, const std::string& default_value,
                  const std::string& description) {
    return {.name = kind,
            .type = ValueType::kOther,
            .description = description,
            .default_value = default_value,
            .json_schema = slot_json_schema(registry, kind)};
}

}  // namespace

PluginChoice read_choice(const Node& node, const std::string& kind, const host::Registry& registry, Faults& faults) {
    PluginChoice out;
    const bool names_one = node.kind == NodeKind::kScalar || (node.kind == NodeKind::kMap && node.find("plugin"));
    if (names_one) read_slot(&node, kind, registry, out, faults);
    else faults.add(node.origin, "'" + kind + "' is " + node.describe() + ", expected a plugin or {plugin: NAME, …}");
    return out;
}

void add_slot(Table<EngineConfig>& table, const SlotInfo& slot, const host::Registry& registry) {
    const std::string kind = slot.kind;
    if (const auto field = slot.choice) {
        table.custom(slot_info(kind, registry, (EngineConfig{}.*field).plugin, slot.description),
                     [kind, field, &registry](const Node* given, EngineConfig& out, Faults& faults) {
                         return read_slot(given, kind, registry, out.*field, faults);
                     });
        return;
    }
    const auto field = slot.optional_choice;
    table.custom(slot_info(kind, registry, kNone, slot.description),
                 [kind, field, &registry](const Node* given, EngineConfig& out, Faults& faults) {
                     const Given asked = split(given, kind, kNone, faults);
                     if (asked.plugin == kNone) {
                         out.*field = std::nullopt;
                         for (const Entry& entry : asked.own.entries)
                             faults.add(entry.key_origin, "unknown key '" + printable(entry.key) + "' of no " + kind +
                                                              " (set plugin: NAME)");
                         return Node::string(kNone, asked.plugin_origin);
                     }
                     return read_slot(given, kind, registry, (out.*field).emplace(), faults);
                 });
}

}  // namespace patchbay::config
