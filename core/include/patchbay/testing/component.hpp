// patchbay/testing/component.hpp - an object of a component, with settings as its YAML would give them.
#pragma once
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "patchbay/plugin.hpp"
#include "patchbay/testing/host.hpp"
#include "patchbay/testing/plugin.hpp"

namespace patchbay::testing {

using Settings = std::map<std::string, std::string>; // by key, the value as YAML text: {{"ageing", "10"}}

class Component {
  public:
    // Keys that are not given take their defaults. Throws std::runtime_error for an unknown key, a missing one without
    // a default or a value that its schema does not allow, and Error for what the plugin refuses. `host` outlives it.
    Component(Plugin plugin, std::string_view kind, Host& host, const Settings& settings = {},
              std::string_view name = {})
        : plugin_(std::move(plugin)), type_(plugin_.component(kind, name)), host_(host), settings_(settings) {
        with_config(settings_, [&](const pb_config& config) { check(type_.create(&host_.table(), &config, &self_)); });
        if (!self_) throw std::runtime_error(std::string(type_.name) + ": create gave no object");
    }
    ~Component() {
        if (self_) type_.destroy(self_);
    }
    Component(const Component&) = delete;
    Component& operator=(const Component&) = delete;

    void* self() const { return self_; }
    template <class Table>
    const Table& table() const { return *static_cast<const Table*>(type_.vtable); }
    template <class Table>
    const Table* extension(const char* id) const { // null: it has none
        return type_.extension ? static_cast<const Table*>(type_.extension(self_, id)) : nullptr;
    }
    // Throws Error with what the plugin said, unless the status is PB_OK.
    void check(pb_status status) const {
        if (status != PB_OK) throw Error(status, std::string(type_.name) + ": " + host_.error);
    }

    // Hot parameters, as `patchbay set` changes them.
    void configure(const Settings& changed) {
        const auto* const table = extension<pb_configure>(PB_CONFIGURE);
        if (!table) throw std::runtime_error(std::string(type_.name) + " has no hot parameters");
        Settings all = settings_;
        for (const auto& [key, value] : changed) all[key] = value;
        with_config(all, [&](const pb_config& config) { check(table->configure(self_, &config)); });
        settings_ = std::move(all);
    }
    std::string save() const {
        if (!type_.save) throw std::runtime_error(std::string(type_.name) + " is stateless");
        std::string out;
        const pb_sink sink{sizeof(pb_sink), 0, &out, [](void* ctx, const void* data, size_t size) {
                               static_cast<std::string*>(ctx)->append(static_cast<const char*>(data), size);
                           }};
        check(type_.save(self_, &sink));
        return out;
    }
    void load(const std::string& saved) { // by a component of the same state
        if (!type_.load) throw std::runtime_error(std::string(type_.name) + " is stateless");
        check(type_.load(self_, type_.state, str(saved)));
    }

  private:
    template <class F>
    void with_config(const Settings& given, F&& f) const {
        std::vector<pb_setting> items;
        for (const auto& [key, value] : given)
            if (!param(key)) throw std::runtime_error(std::string(type_.name) + " has no parameter '" + key + "'");
        for (uint32_t i = 0; i < type_.param_count; ++i) {
            const pb_param& p = param_at(i);
            const auto at = given.find(p.name);
            if (at == given.end() && !p.default_value)
                throw std::runtime_error(std::string(p.name) + " has no default: give it a value");
            const std::string_view value = at != given.end() ? std::string_view(at->second) : p.default_value;
            check_value(p, value);
            items.push_back({str(p.name), str(value)});
        }
        f(pb_config{sizeof(pb_config), static_cast<uint32_t>(items.size()), items.data()});
    }
    const pb_param& param_at(uint32_t i) const {
        return *reinterpret_cast<const pb_param*>(reinterpret_cast<const char*>(type_.params) +
                                                  size_t{i} * type_.param_stride);
    }
    const pb_param* param(const std::string& key) const {
        for (uint32_t i = 0; i < type_.param_count; ++i)
            if (param_at(i).name == key) return &param_at(i);
        return nullptr;
    }
    static void check_value(const pb_param& p, std::string_view value) { // as the host does
        using patchbay::detail::parse_setting;
        const auto refuse = [&](const std::string& why) {
            throw std::runtime_error(std::string(p.name) + " is '" + std::string(value) + "', " + why);
        };
        if (p.type == PB_PARAM_BOOL) parse_setting<bool>(p.name, value);
        if (p.type == PB_PARAM_ENUM) {
            std::string choices;
            for (const char* const* c = p.choices; c && *c; ++c) {
                if (value == *c) return;
                choices += (choices.empty() ? "" : ", ") + std::string(*c);
            }
            refuse("expected one of " + choices);
        }
        if (p.type != PB_PARAM_INT && p.type != PB_PARAM_FLOAT) return;
        const auto x = p.type == PB_PARAM_INT ? static_cast<double>(parse_setting<int64_t>(p.name, value))
                                              : parse_setting<double>(p.name, value);
        if (!std::isfinite(x) || ((p.flags & PB_PARAM_HAS_MIN) && x < p.min) ||
            ((p.flags & PB_PARAM_HAS_MAX) && x > p.max))
            refuse("which is out of range");
    }

    Plugin plugin_; // goes last
    const pb_component& type_;
    Host& host_;
    Settings settings_;
    void* self_ = nullptr;
};

// What the classes of the kinds have in common: a host of their own, and the component.
class Subject {
  public:
    Subject(const Plugin& plugin, std::string_view kind, const Settings& settings = {}, std::string_view name = {})
        : component(plugin, kind, host, settings, name) {}
    Subject(const Subject&) = delete;
    Subject& operator=(const Subject&) = delete;

    Host host;
    Component component; // goes first
};

}  // namespace patchbay::testing
