#include "cli/commands.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "base/suggest.hpp"
#include "base/words.hpp"
#include "cli/flag_checks.hpp"
#include "cli/plugin_build.hpp"
#include "cli/plugin_check.hpp"
#include "cli/plugin_dirs.hpp"
#include "cli/plugin_new.hpp"
#include "cli/plugin_thorough.hpp"
#include "cli/print_table.hpp"
#include "cli/running_engine.hpp"
#include "host/contract.hpp"
#include "host/plugin_list.hpp"
#include "top/engine_link.hpp"
#include "top/pages.hpp"
#include "top/terminal.hpp"

namespace patchbay::cli {
namespace {

using json = nlohmann::json;
using host::kKinds;
using Listed = host::ListedComponent;

struct PluginOptions {
    std::vector<std::string> plugin_dirs, settings;
    std::string kind, name, file;
    bool as_json = false, pins = false, running = false, thorough = false, debug = false;
    uint64_t seed = ThoroughTest{}.seed;
    uint32_t worlds = ThoroughTest{}.worlds;
    RunningEngineFlags engine;
    std::optional<uint32_t> timeout_s;
    NewPlugin fresh;
    PluginSource source;
};

// Of its kind, that later versions of Patchbay load it, too; see docs/plugins/compatibility.md.
bool is_released(const host::ComponentManifest& c) {
    const host::ContractPart* const kind = host::find_kind(c.kind_id);
    return kind && kind->is_released;
}

json to_json(const Listed& l) {
    return {{"kind", l.component->kind},       {"name", l.component->name}, {"version", l.component->version},
            {"summary", l.component->summary}, {"plugin", l.plugin->name},  {"library", l.plugin->library.string()},
            {"sha256", l.plugin->sha256},      {"build", l.plugin->build},  {"state", name_of(l.state)},
            {"fault", l.fault},                {"contract", l.component->kind_id},
            {"released", is_released(*l.component)}};
}

// "unavailable: no NVIDIA driver" of what is sound but not for this machine, "unusable: …" of the rest.
std::string state_line(const Listed& l, const std::string& of) {
    if (l.state == host::Usability::kUnavailable)
        return "unavailable: " + of + printable_message(l.component->unavailable);
    return "unusable: " + of + printable_message(l.fault);
}

std::vector<std::string> kind_names() { return {std::begin(kKinds), std::end(kKinds)}; }

// As the key allowed_plugins of an engine's YAML.
void print_pins(const std::vector<Listed>& components) {
    std::map<std::string, std::string> pins;
    for (const Listed& l : components)
        if (l.state != host::Usability::kRefused) pins.emplace(l.plugin->library.filename().string(), l.plugin->sha256);
    std::cout << "allowed_plugins:\n";
    for (const auto& [library, digest] : pins) std::cout << "  " << printable(library) << ": " << digest << '\n';
}

Result<> list(const PluginOptions& o) {
    if (!o.kind.empty() && std::ranges::find(kKinds, o.kind) == std::end(kKinds))
        return not_found("no kind '" + o.kind + "'" + did_you_mean(o.kind, kind_names()));
    PB_TRY(const auto registry, registry_of(o.plugin_dirs));
    const auto components = host::list_components(registry, o.kind);
    if (o.as_json) {
        json out = {{"components", json::array()}, {"remarks", registry.remarks()}, {"folders", json::array()}};
        for (const Listed& l : components) out["components"].push_back(to_json(l));
        for (const auto& folder : registry.folders()) out["folders"].push_back(folder.string());
        std::cout << out.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
        return {};
    }
    if (o.pins) {
        print_pins(components);
        return {};
    }
    std::vector<std::vector<std::string>> rows = {{"KIND", "NAME", "VERSION", "LIBRARY", "SUMMARY"}};
    for (const Listed& l : components)
        rows.push_back({l.component->kind, l.component->name, l.component->version,
                        l.plugin->library.filename().string(), l.component->summary});
    print_table(rows);
    for (const auto& folder : registry.folders())
        std::cout << "searched: " << printable_message(folder.string()) << '\n';
    for (const Listed& l : components)
        if (!l.fault.empty()) std::cout << state_line(l, l.component->kind + " " + l.component->name + ": ") << '\n';
    for (const std::string& remark : registry.remarks()) std::cout << "left out: " << printable_message(remark) << '\n';
    return {};
}

std::string range_of(const host::ParamManifest& p) {
    if (p.type == "enum") {
        std::string out;
        for (const std::string& c : p.choices) out += (out.empty() ? "" : " | ") + c;
        return out;
    }
    if (!p.min && !p.max) return p.type;
    const auto plain = [](double x) {
        return json(x == static_cast<double>(static_cast<int64_t>(x)) ? json(static_cast<int64_t>(x)) : json(x)).dump();
    };
    return p.type + " " + (p.min ? plain(*p.min) : "-inf") + " to " + (p.max ? plain(*p.max) : "inf");
}

void print_info(const Listed& l) {
    const host::ComponentManifest& c = *l.component;
    std::cout << c.kind << ' ' << c.name << ' ' << c.version << ": " << c.summary << '\n';
    if (!l.fault.empty()) std::cout << "  " << state_line(l, "") << '\n';
    std::cout << "  library  " << printable_message(l.plugin->library.string()) << "\n  plugin   "
              << l.plugin->name << ' '
              << l.plugin->version << "\n  build    " << l.plugin->build << "\n  sha256   " << l.plugin->sha256
              << "\n  contract " << c.kind_id << " revision " << c.revision
              << (is_released(c) ? " (released)" : " (a draft)") << ", ABI " << l.plugin->abi_major << '.'
              << l.plugin->abi_minor << '\n';
    std::cout << "  has      " << found_in(c) << '\n';
    if (!c.state.empty()) std::cout << "  state    " << c.state << '\n';
    for (const std::string& a : c.architectures) std::cout << "  serves   " << printable(a) << '\n';
    if (c.params.empty()) {
        std::cout << "  no parameters\n";
        return;
    }
    std::vector<std::vector<std::string>> rows = {
        {"  PARAMETER", "VALUES", "DEFAULT", "UNIT", "CHANGES", "DESCRIPTION"}};
    for (const host::ParamManifest& p : c.params)
        rows.push_back({"  " + p.name, range_of(p), p.default_value.value_or("(required)"),
                        p.unit.empty() ? "-" : p.unit,
                        p.hot ? "live" : "at start", p.description});
    print_table(rows);
}

// What its library says of it.
Result<> installed_info(const PluginOptions& o) {
    PB_TRY(const auto registry, registry_of(o.plugin_dirs));
    // "fcfs", or "scheduler/fcfs" where two kinds share a name.
    const size_t slash = o.name.find('/');
    const std::string kind = slash == std::string::npos ? "" : o.name.substr(0, slash),
                      name = slash == std::string::npos ? o.name : o.name.substr(slash + 1);
    std::vector<Listed> found;
    std::vector<std::string> names;
    for (const Listed& l : host::list_components(registry, kind)) {
        names.push_back(l.component->name);
        if (l.component->name == name) found.push_back(l);
    }
    if (found.empty())
        return not_found("no plugin has a component '" + o.name + "'" + did_you_mean(name, names) + left_out(registry));
    for (Listed& l : found) {
        if (const auto used = registry.find(l.component->kind, l.component->name); !used && l.fault.empty()) {
            l.state = host::Usability::kRefused;
            l.fault = used.error();
        }
        print_info(l);
    }
    return {};
}

bool is_named(const top::Component& c, const std::string& name) {
    return c.plugin == name || c.kind + "/" + c.plugin == name;
}

std::string place_of(const top::Component& c, const metrics::Scrape& scrape) {
    for (const top::Component& now : top::components_in_slots(scrape))
        if (now.kind == c.kind && now.plugin == c.plugin) return "in the slot";
        else if (now.kind == c.kind) return "was in the slot, which has " + now.plugin;
    return "was in the slot";
}

// With which it is in its slot; empty: it has none, or is in no slot.
std::string parameters_of(const top::Component& c, const serve::Json& status) {
    if (!status.is_object()) return {};
    for (const serve::Json& slot : status.value("slots", serve::Json::array()))
        if (slot.at("kind") == c.kind && slot.at("plugin") == c.plugin) return params_text(slot.at("params"));
    return {};
}

// What a running engine says of one component: parameters, time in its calls, faults by reason, and the swaps of its
// slot. The failure: the engine cannot be reached, or has not had a component of that name since it began.
Result<> print_live_component(const serve::AdminAddress& address, const std::string& name) {
    PB_TRY(top::Sample sample, top::take_sample({address}));
    top::History history;
    history.add(sample.at_seconds, std::move(sample.scrape));
    const auto& glyphs = top::locale_is_utf8() ? top::unicode_glyphs() : top::ascii_glyphs();
    const top::View view{history, sample.status, address.text(), "", glyphs};
    constexpr top::PageSize kWide{100, 1000, false};
    std::vector<std::string> names;
    bool found = false;
    for (const top::Component& c : top::known_components(history.latest())) {
        names.push_back(c.plugin);
        if (!is_named(c, name)) continue;
        found = true;
        std::cout << "\nin the engine on " << printable_message(address.text()) << ": " << printable(c.kind) << ' '
                  << printable(c.plugin) << " " << printable(place_of(c, history.latest())) << '\n';
        if (const std::string now = parameters_of(c, sample.status); !now.empty())
            std::cout << "parameters: " << printable_message(now) << '\n';
        std::cout << '\n';
        for (const top::Line& line : top::component_report(c, view, kWide)) std::cout << line.text() << '\n';
    }
    if (found) return {};
    return fail(StatusCode::kNotFound, "the engine on " + address.text() + " has had no component '" + name +
                                           "' in a slot" + did_you_mean(name, names));
}

// Of a running engine, what it knows besides; the component may come from a folder that only the engine searches.
Result<> info(const PluginOptions& o) {
    const bool asks_engine = o.running || !o.engine.address.empty();
    const Result<> installed = installed_info(o);
    if (!asks_engine) return installed;
    PB_TRY(const serve::AdminAddress address, running_engine(o.engine));
    return print_live_component(address, o.name);
}

Result<> test(const PluginOptions& o) {
    PluginCheck check{o.file, o.timeout_s, o.debug ? DebugLines::kShown : DebugLines::kNone};
    for (const std::string& setting : o.settings) {
        const size_t equals = setting.find('=');
        check.settings[setting.substr(0, equals)] = setting.substr(equals + 1);
    }
    PB_CHECK(check_plugin(check));
    if (!o.thorough) return {};
    return test_thoroughly({o.file, o.seed, o.worlds, o.timeout_s.value_or(ThoroughTest{}.timeout_s)});
}

CLI::App* add_action(Commands& commands, CLI::App* parent, const std::shared_ptr<PluginOptions>& o, const char* name,
                     const char* description, Result<> (*action)(const PluginOptions&)) {
    CLI::App* app = parent->add_subcommand(name, description);
    set_action(commands, app, o,
               {.run = action, .print = print_error, .check = [](const PluginOptions& given) { check(given.engine); }});
    return app;
}

}  // namespace

void add_plugin_command(Commands& commands) {
    CLI::App* app = commands.app.add_subcommand("plugin", "List, describe, write, build and test plugins");
    app->require_subcommand(1);
    app->footer(
        "Examples:\n"
        "  patchbay plugin list --kind scheduler\n"
        "  patchbay plugin info sjf\n"
        "  patchbay plugin new scheduler mine\n"
        "  patchbay plugin build mine/mine.cpp\n"
        "  patchbay plugin test mine/mine.so");
    const auto o = std::make_shared<PluginOptions>();
    CLI::App* list_app =
        add_action(commands, app, o, "list", "List what is installed; reads manifests and runs no plugin", list);
    add_plugin_dirs(*list_app, o->plugin_dirs);
    list_app->add_option("--kind", o->kind, "one of " + joined(kind_names()));
    auto* const json = list_app->add_flag("--json", o->as_json, "as JSON");
    list_app->add_flag("--pins", o->pins, "digests of the libraries, in the form of an engine's allowed_plugins:")
        ->excludes(json);
    list_app->footer("Example:\n  patchbay plugin list --kind sampler --json");
    CLI::App* info_app =
        add_action(commands, app, o, "info", "Show a component's parameters, build and identity", info);
    add_plugin_dirs(*info_app, o->plugin_dirs);
    info_app->add_option("NAME", o->name, "plugin name as in the YAML: fcfs, or scheduler/fcfs")->required();
    add_flags_of_running_engine(*info_app, std::shared_ptr<RunningEngineFlags>(o, &o->engine));
    info_app->add_flag("--running", o->running, "also show its statistics in the running engine: calls, faults, swaps");
    info_app->footer(
        "Examples:\n"
        "  patchbay plugin info sjf\n"
        "  patchbay plugin info sjf --running\n"
        "  patchbay plugin info scheduler/sjf --admin ./admin.sock");
    CLI::App* new_app = add_action(commands, app, o, "new", "Write a plugin that builds, with its test and a README",
                                   [](const PluginOptions& given) { return write_new_plugin(given.fresh); });
    new_app->add_option("KIND", o->fresh.kind, "scheduler, attention, …; any other word lists them")
        ->required();
    new_app->add_option("NAME", o->fresh.name, "plugin name as in the YAML: a-z, 0-9 and _")->required();
    new_app->add_option("--lang", o->fresh.language, "cpp (C++20) or c (C11)")->capture_default_str();
    new_app->add_option("--dir", o->fresh.folder, "folder to create for it (default: NAME)");
    new_app->footer(
        "Examples:\n"
        "  patchbay plugin new attention my_attention\n"
        "  patchbay plugin new scheduler mine --lang c --dir plugins/mine");
    CLI::App* build_app =
        add_action(commands, app, o, "build", "Compile a plugin of one file and run its checks",
                   [](const PluginOptions& given) { return build_plugin(given.source); });
    build_app->add_option("FILE", o->source.file, "its source, .cpp or .c")->required();
    build_app->add_option("-o,--output", o->source.folder, "folder of the library (default: that of FILE)");
    build_app->footer(
        "Examples:\n"
        "  patchbay plugin build mine/mine.cpp\n"
        "  CXX=clang++ CXXFLAGS=-march=native patchbay plugin build mine.cpp -o plugins\n"
        "The compiler is $CXX or $CC, else the first of c++, g++, clang++ or cc, gcc, clang on PATH. $CXXFLAGS or\n"
        "$CFLAGS, and $LDFLAGS add flags. Exit codes: 0 usable, 1 not compiled or refused, 2 bad usage.");
    CLI::App* test_app =
        add_action(commands, app, o, "test", "Run a library's checks in a child process and write its manifest", test);
    test_app->add_option("FILE.so", o->file, "the library")->required();
    test_app
        ->add_option("SETTING", o->settings,
                     "KEY=VALUE: then run the checks again with these settings, for each component that takes them")
        ->each([](const std::string& setting) {
            if (const size_t equals = setting.find('='); equals == 0 || equals == std::string::npos)
                throw CLI::ValidationError("SETTING", "got '" + setting + "', expected KEY=VALUE");
        });
    test_app
        ->add_option("--timeout", o->timeout_s,
                     "seconds after which it is killed (default: PATCHBAY_PROBE_TIMEOUT_S, or 60)")
        ->transform(within<uint32_t>(1, 86'400));
    auto* const thorough =
        test_app->add_flag("--thorough", o->thorough,
                           "then the checks with other seeds, and random test cases in a simulated engine; a failing "
                           "case is shrunk and kept as a scenario file");
    test_app->add_option("--worlds", o->worlds, "random test cases of --thorough, for each scheduler and kv_policy")
        ->needs(thorough)
        ->capture_default_str()
        ->transform(within<uint32_t>(1, 1'000'000));
    test_app->add_option("--seed", o->seed, "seed of the first test case and of the checks of --thorough")
        ->needs(thorough)
        ->capture_default_str()
        ->transform(within<uint64_t>(0));
    test_app->add_flag("--debug", o->debug, "after a failed check, print the command that runs it in gdb");
    test_app->footer(
        "Examples:\n"
        "  patchbay plugin test build/release/lib/patchbay/plugins/scheduler-fcfs.so\n"
        "  patchbay plugin test mine/mine.so --thorough --worlds 1000\n"
        "  patchbay plugin test mine/mine.so weights=/data/mine.bin\n"
        "Exit codes: 0 usable, 1 refused, or a check with settings or --thorough failed (the plugin stays usable),\n"
        "2 bad usage.");
}

}  // namespace patchbay::cli
