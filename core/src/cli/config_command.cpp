#include "cli/config_command.hpp"

#include <iostream>
#include <memory>

#include "config/check_file.hpp"

namespace patchbay::cli {
namespace {

struct Options {
    std::string file;
    std::vector<std::string> plugin_dirs;
    bool json = false;
};

Result<config::Checked> check(const Options& o) {
    PB_TRY(const auto registry, host::Registry::open({o.plugin_dirs.begin(), o.plugin_dirs.end()}));
    PB_TRY(auto checked, config::check_file(o.file, registry));
    for (const std::string& warning : checked.warnings) std::cerr << "warning: " << warning << '\n';
    return checked;
}

Result<> print_check(const Options& o) {
    PB_TRY(const auto checked, check(o));
    std::cout << o.file << ": ok: " << checked.summary << '\n';
    return {};
}

Result<> print_effective(const Options& o) {
    PB_TRY(const auto checked, check(o));
    if (o.json) std::cout << config::show_json(checked.effective) << '\n';
    else std::cout << config::show_yaml(checked.effective);
    return {};
}

Result<> print_schema(const Options& o) {
    PB_TRY(const auto registry, host::Registry::open({o.plugin_dirs.begin(), o.plugin_dirs.end()}));
    std::cout << config::json_schema(registry) << '\n';
    return {};
}

CLI::App* add_action(Commands& commands, CLI::App* parent, std::shared_ptr<Options> o, const char* name, const char* meaning, Result<> (*action)(const Options&)) {
    CLI::App* app = parent->add_subcommand(name, meaning);
    app->add_option("--plugin-dir", o->plugin_dirs, "folder with plugins, searched first")->allow_extra_args(false);
    app->callback([&commands, o, action] {
        commands.chosen = [o, action] {
            const Result<> done = action(*o);
            if (!done) std::cerr << done.error() << '\n'; // each line begins with its place
            return done ? kOk : kFailed;
        };
    });
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
    const auto o = std::make_shared<Options>();
    CLI::App* check_app = add_action(commands, app, o, "check", "Report every fault of a file, or say that it is fine", print_check);
    check_app->add_option("FILE", o->file, "engine configuration or experiment")->required();
    check_app->footer("Example:\n  patchbay config check configs/engine/demo.yaml\nExit codes: 0 fine, 1 faults, 2 bad usage.");
    CLI::App* show_app = add_action(commands, app, o, "show", "Print every value in effect with where it came from", print_effective);
    show_app->add_option("FILE", o->file, "engine configuration or experiment")->required();
    show_app->add_flag("--json", o->json, "values and origins as JSON");
    show_app->footer("Example:\n  patchbay config show configs/engine/demo.yaml > again.yaml   # again.yaml means the same");
    CLI::App* schema_app = add_action(commands, app, o, "schema", "Print the JSON Schema of engine configurations, for editors", print_schema);
    schema_app->footer("Example:\n  patchbay config schema > engine.schema.json\n"
                       "  # first line of a YAML file: # yaml-language-server: $schema=engine.schema.json");
}

}  // namespace patchbay::cli
