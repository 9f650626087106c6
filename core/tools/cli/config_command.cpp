#include "cli/commands.hpp"

#include <algorithm>
#include <iostream>
#include <memory>
#include <set>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "base/suggest.hpp"
#include "base/words.hpp"
#include "cli/plugin_dirs.hpp"
#include "cli/print_error.hpp"
#include "config/show.hpp"
#include "config/slots.hpp"
#include "execution/allowed_parts.hpp"
#include "execution/model_choice.hpp"
#include "experiment/portable_spec.hpp"
#include "experiment/prepared_variants.hpp"
#include "experiment/repeats_table.hpp"
#include "experiment/spec_load.hpp"
#include "experiment/variants_table.hpp"

namespace patchbay::cli {
namespace {

struct ConfigOptions {
    std::string file, variant;
    std::vector<std::string> plugin_dirs;
    bool json = false, experiment = false;
};

// Called with each configuration before it is shown; may add origins of its values.
using Explain = std::function<void(config::Loaded&)>;

struct ShownConfig {
    std::string name; // of a variant; empty: the file as a whole
    config::Node effective;
};

struct Checked {
    std::string summary;              // one line: "3 variants, 5 repeats, 200 requests"
    std::vector<ShownConfig> configs; // the whole file, then an experiment's variants
    std::vector<std::string> warnings;
};

std::string summary_of(const config::EngineConfig& c) {
    std::string model = std::filesystem::path(c.model.path).filename().string();
    if (c.model.load_format == config::LoadFormat::kDummy)
        model = model.empty() ? "dummy weights" : model + " with dummy weights";
    std::string out = model;
    for (const config::SlotInfo& slot : config::slots())
        if (const config::PluginChoice* choice = slot.of(c)) out += ", " + slot.kind + " " + choice->plugin;
    return out;
}

Result<Checked> check_engine(const config::Document& document, const host::Registry& registry,
                             const Explain& explain) {
    PB_TRY(config::Loaded loaded, config::load_engine_config(document.root, registry));
    config::Faults faults;
    execution::check_allowed_plugins(loaded, registry, faults);
    if (faults.any()) return faults.failure();
    explain(loaded);
    return Checked{summary_of(loaded.config), {{"", std::move(loaded.effective)}}, std::move(loaded.warnings)};
}

// Of the engine's keys that the file and its variants have, each once.
std::string engine_faults(const config::Node& document, const host::Registry& registry) {
    std::string out;
    std::set<std::string> seen;
    const auto add = [&](const config::Node& keys) {
        config::EngineConfig ignored;
        config::Faults faults;
        config::engine_config_table(registry).read(keys, ignored, faults);
        for (const std::string& line : faults.lines())
            if (seen.insert(line).second) out += "\n" + line;
    };
    const config::Node shared = config::engine_part(document);
    add(shared);
    for (const experiment::VariantSpec& v : experiment::readable_variants(document))
        add(config::merge(shared, config::engine_part(v.patch)));
    return out;
}

// Keys that the file leaves out and that have a default, in the sections too.
void add_defaults(config::Node& map, const std::vector<config::KeyInfo>& keys) {
    for (const config::KeyInfo& key : keys) {
        if (key.type == config::ValueType::kMap) {
            const config::Node* given = map.find(key.name);
            config::Node section = given ? *given : config::Node::map();
            add_defaults(section, key.children);
            if (!section.entries.empty()) map.set(key.name, std::move(section));
        } else if (key.default_value && !map.find(key.name)) {
            const bool text = key.type == config::ValueType::kString;
            map.set(key.name, text ? config::Node::string(*key.default_value)
                                   : config::Node::scalar(*key.default_value));
        }
    }
}

// As `config show` prints it: every value in effect, in a file that asks the same of the same engines.
config::Node shown_experiment(const experiment::ExperimentSpec& spec, const host::Registry& registry,
                      const Explain& explain) {
    config::Node shown = experiment::portable(spec, registry);
    const auto choose = [&](const char* key, const std::string& value, const std::string& reason) {
        if (!spec.document.find(key)) shown.set(key, config::Node::string(value, config::Origin::automatic(reason)));
    };
    choose("name", spec.name, "the file's or folder's");
    // Not by its name: names of factors' variants hold paths as they were written.
    choose("baseline", "", spec.variants[spec.baseline].name + ", the first variant");
    add_defaults(shown, experiment::experiment_keys());
    // What the variants share; where it is no whole configuration (a model for each variant, say) only what is given.
    if (auto shared = config::load_engine_config(config::engine_part(shown), registry)) {
        explain(*shared);
        for (config::Entry& e : shared->effective.entries) shown.set(e.key, std::move(e.value));
    }
    return shown;
}

// The spec's faults and the engine's, all of them; then each variant as it would run.
Result<Checked> check_experiment(const config::Document& document, const host::Registry& registry,
                                 const Explain& explain) {
    auto spec = experiment::spec_from(document.root, experiment::name_of_file(document.files.front().path));
    config::Faults missing;
    experiment::check_inputs(document.root, missing);
    const auto with_missing = [&](std::string text) {
        for (const std::string& line : missing.lines()) text += (text.empty() ? "" : "\n") + line;
        return invalid(std::move(text));
    };
    if (!spec) return with_missing(spec.error() + engine_faults(document.root, registry));
    auto prepared_or = experiment::prepare_variants(*spec, registry);
    if (!prepared_or || missing.any()) return with_missing(prepared_or ? "" : prepared_or.error());
    experiment::PreparedVariants& prepared = *prepared_or;
    Checked out;
    out.summary = number_of(prepared.variants.size(), "variant") + ", baseline " +
                  config::printable(prepared.variants[prepared.baseline].name) + ", " + experiment::repeats_text(*spec);
    out.configs.push_back({"", shown_experiment(*spec, registry, explain)});
    for (experiment::PreparedVariant& e : prepared.variants) {
        for (std::string& warning : e.loaded.warnings)
            if (std::find(out.warnings.begin(), out.warnings.end(), warning) == out.warnings.end())
                out.warnings.push_back(std::move(warning));
        explain(e.loaded);
        out.configs.push_back({e.name, std::move(e.loaded.effective)});
    }
    return out;
}

Result<Checked> check(const ConfigOptions& o, void (*explain)(config::Loaded&, const host::Registry&)) {
    PB_TRY(const auto registry, registry_of(o.plugin_dirs));
    const auto explain_one = [&](config::Loaded& loaded) { explain(loaded, registry); };
    PB_TRY(const config::Document document, config::load_document(o.file));
    const auto check_it = experiment::is_experiment(document.root) ? check_experiment : check_engine;
    PB_TRY(auto checked, check_it(document, registry, explain_one));
    for (const std::string& warning : checked.warnings) print_error("warning", warning);
    return checked;
}

Result<> print_check(const ConfigOptions& o) {
    PB_TRY(const auto checked, check(o, [](config::Loaded&, const host::Registry&) {}));
    std::cout << o.file << ": ok: " << checked.summary << '\n';
    return {};
}

Result<> print_effective(const ConfigOptions& o) {
    PB_TRY(const auto checked, check(o, execution::explain_automatic));
    auto chosen = checked.configs.begin();
    if (!o.variant.empty()) {
        std::vector<std::string> names;
        for (const ShownConfig& c : checked.configs)
            if (!c.name.empty()) names.push_back(c.name);
        chosen = std::find_if(checked.configs.begin(), checked.configs.end(),
                              [&](const auto& c) { return c.name == o.variant; });
        if (chosen == checked.configs.end())
            return in_one_line(Result<>(
                not_found(o.file + ": no variant '" + o.variant + "'" + did_you_mean(o.variant, names))));
    }
    if (o.json) {
        std::cout << config::show_json(chosen->effective) << '\n';
        return {};
    }
    if (!chosen->name.empty())
        std::cout << "# the engine of variant " << config::printable(chosen->name) << " of " << o.file << '\n';
    std::cout << config::show_yaml(chosen->effective);
    return {};
}

Result<> print_schema(const ConfigOptions& o) {
    PB_TRY(const auto registry, registry_of(o.plugin_dirs));
    std::cout << (o.experiment
                      ? config::json_schema(registry, "Patchbay experiment", experiment::experiment_keys())
                      : config::json_schema(registry))
              << '\n';
    return {};
}

CLI::App* add_action(Commands& commands, CLI::App* parent, const std::shared_ptr<ConfigOptions>& o, const char* name,
                     const char* description, Result<> (*action)(const ConfigOptions&)) {
    CLI::App* app = parent->add_subcommand(name, description);
    add_plugin_dirs(*app, o->plugin_dirs);
    const auto print = [](std::string_view, std::string_view text) { print_faults("", text); };
    set_action(commands, app, o, {action, print});
    return app;
}

}  // namespace

void add_config_command(Commands& commands) {
    CLI::App* app = commands.app.add_subcommand("config", "Check and show configuration files");
    app->require_subcommand(1);
    app->footer("Examples:\n"
                "  patchbay config check configs/engine/demo.yaml\n"
                "  patchbay config show configs/engine/demo.yaml\n"
                "  patchbay config schema > engine.schema.json");
    const auto o = std::make_shared<ConfigOptions>();
    CLI::App* check_app =
        add_action(commands, app, o, "check", "Report every fault of a file, or say that it is fine", print_check);
    check_app->add_option("FILE", o->file, "engine configuration or experiment")->required();
    check_app->footer(
        "Example:\n  patchbay config check configs/engine/demo.yaml\nExit codes: 0 fine, 1 faults, 2 bad usage.");
    CLI::App* show_app =
        add_action(commands, app, o, "show", "Print every value in effect and its origin", print_effective);
    show_app->add_option("FILE", o->file, "engine configuration or experiment")->required();
    show_app->add_option("--variant", o->variant, "only the engine of this variant of an experiment");
    show_app->add_flag("--json", o->json, "values and origins as JSON");
    show_app->footer(
        "Example:\n  patchbay config show configs/engine/demo.yaml > again.yaml   # again.yaml means the same");
    CLI::App* schema_app = add_action(commands, app, o, "schema",
                                      "Print the JSON Schema of engine configurations, for editors", print_schema);
    schema_app->add_flag("--experiment", o->experiment, "print the schema of experiment files instead");
    schema_app->footer("Example:\n  patchbay config schema > engine.schema.json\n"
                       "  # first line of a YAML file: # yaml-language-server: $schema=engine.schema.json");
}

}  // namespace patchbay::cli
