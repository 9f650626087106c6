#include "cli/admin_command.hpp"

#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "base/suggest.hpp"
#include "cli/print_error.hpp"
#include "cli/running_engine.hpp"
#include "cli/status_tables.hpp"
#include "engine/swap/swap_slot.hpp"
#include "serve/admin_client.hpp"
#include "serve/fields.hpp"

namespace patchbay::cli {
namespace {

using serve::Json;

struct Options {
    RunningEngineFlags engine;
    std::string kind, plugin;
    std::vector<std::string> settings; // key=value
    bool as_json = false;
};

// What the server says, or refuses: {"error": {"message": …}}.
Result<Json> ask(const Options& o, const char* method, const char* path, const std::string& body = {}) {
    PB_TRY(const serve::AdminAddress address, running_engine(o.engine));
    PB_TRY(const serve::HttpResponse answer, serve::ask_admin(address, method, path, body));
    auto json = serve::parse_body(answer.body);
    if (!json) return fail(address.text() + " is no admin address of an engine: " + json.error());
    if (const auto error = json->find("error"); error != json->end() && error->is_object())
        return fail(address.text() + ": " + error->value("message", "HTTP " + std::to_string(answer.status)));
    return json;
}

void print_json(const Json& json) { std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n'; }

Result<> status(const Options& o) {
    PB_TRY(const Json json, ask(o, "GET", "/status"));
    if (o.as_json) print_json(json);
    else print_status(json);
    return {};
}

Json params_of(const Options& o) {
    Json out = Json::object();
    for (const std::string& setting : o.settings) {
        const size_t equals = setting.find('=');
        out[setting.substr(0, equals)] = setting.substr(equals + 1);
    }
    return out;
}

Result<> set(const Options& o) {
    const Json body{{"kind", o.kind}, {"params", params_of(o)}};
    PB_TRY(const Json json, ask(o, "POST", "/set", body.dump(-1, ' ', false, Json::error_handler_t::replace)));
    if (o.as_json) {
        print_json(json);
        return {};
    }
    for (const auto& [name, value] : json.at("params").items())
        std::cout << printable(name) << '=' << printable(value.get<std::string>()) << '\n';
    return {};
}

Result<> swap(const Options& o) {
    const bool is_model = o.kind == name_of(engine::SwapSlot::kModel); // which the engine opens, in another folder
    const std::string plugin = is_model ? std::filesystem::absolute(o.plugin).lexically_normal().string() : o.plugin;
    const Json body{{"kind", o.kind}, {"plugin", plugin}, {"params", params_of(o)}};
    const auto text = body.dump(-1, ' ', false, Json::error_handler_t::replace);
    PB_TRY(const Json json, ask(o, "POST", "/swap", text));
    const std::string outcome = json.at("outcome");
    if (o.as_json) print_json(json);
    if (outcome == "refused" || outcome == "rolled back") return fail(swap_text(json));
    if (o.as_json) return {};
    std::cout << printable_message(swap_text(json));
    if (outcome == "committed")
        std::cout << " (step " << json.at("step") << ", pause " << std::lround(json.at("pause_us").get<double>())
                  << " us)\n";
    else std::cout << ": the engine has nothing to compute; the outcome shows when it has\n";
    return {};
}

Result<> reload(const Options& o) {
    PB_TRY(const Json json, ask(o, "POST", "/reload"));
    if (o.as_json) {
        print_json(json);
        return {};
    }
    size_t found = 0;
    for (const char* what : {"added", "changed", "removed"})
        for (const Json& name : json.at(what)) {
            std::cout << what << ": " << printable(name.get<std::string>()) << '\n';
            found += 1;
        }
    if (found == 0) std::cout << "nothing has changed\n";
    for (const Json& remark : json.at("left_out"))
        std::cout << "left out: " << printable_message(remark.get<std::string>()) << '\n';
    return {};
}

Result<> drain(const Options& o) {
    PB_TRY(const Json json, ask(o, "POST", "/drain"));
    if (o.as_json) print_json(json);
    else std::cout << "draining: " << json.at("unfinished") << " requests to finish, then the engine ends\n";
    return {};
}

void check_swap(const Options& o) {
    if (!engine::swap_slot(o.kind))
        throw CLI::ValidationError("KIND", "got '" + o.kind + "', expected " + engine::one_of(engine::swap_slots()) +
                                               ", which can be swapped" + did_you_mean(o.kind, engine::swap_slots()));
    for (const std::string& setting : o.settings)
        if (const size_t equals = setting.find('='); equals == 0 || equals == std::string::npos)
            throw CLI::ValidationError("SETTING", "got '" + setting + "', expected KEY=VALUE");
}

CLI::App* add_command(Commands& commands, const std::shared_ptr<Options>& o, const char* name, const char* description,
                      Result<> (*action)(const Options&), void (*check_more)(const Options&) = nullptr) {
    CLI::App* app = commands.app.add_subcommand(name, description);
    add_flags_of_running_engine(*app, std::shared_ptr<RunningEngineFlags>(o, &o->engine));
    app->add_flag("--json", o->as_json, "as JSON");
    app->callback([&commands, o, name, action, check_more] {
        check(o->engine);
        if (check_more) check_more(*o);
        commands.chosen = [o, name, action] {
            const Result<> done = action(*o);
            if (!done) print_faults(std::string("patchbay ") + name, done.error());
            return done ? kOk : kFailed;
        };
    });
    return app;
}

}  // namespace

void add_admin_commands(Commands& commands) {
    const auto o = std::make_shared<Options>();
    add_command(commands, o, "status", "Show what a running engine does: slots, queues, pages, swaps", status)
        ->footer(
            "Examples:\n"
            "  patchbay status\n"
            "  patchbay status --admin 10.0.0.7:9000 --admin-token-file token --json");
    CLI::App* app = add_command(commands, o, "swap", "Put another plugin into a slot of a running engine", swap,
                                check_swap);
    app->add_option("KIND", o->kind, engine::one_of(engine::swap_slots()))->required();
    app->add_option("PLUGIN", o->plugin, "the word in the YAML; of the model: the folder or file of its weights")
        ->required();
    app->add_option("SETTING", o->settings, "KEY=VALUE of the plugin's parameters");
    app->footer(
        "Examples:\n"
        "  patchbay swap scheduler sjf ageing=10\n"
        "  patchbay swap sampler greedy --admin ./admin.sock\n"
        "  patchbay swap model checkpoints/step-2000\n"
        "Exit codes: 0 done, 1 refused or rolled back, 2 bad usage.");
    app = add_command(commands, o, "set", "Change hot parameters of a plugin in a running engine", set, check_swap);
    app->add_option("KIND", o->kind, engine::one_of(engine::swap_slots()))->required();
    app->add_option("SETTING", o->settings, "KEY=VALUE; `patchbay plugin info` shows which change live")->required();
    app->footer("Example:\n  patchbay set scheduler ageing=10");
    add_command(commands, o, "reload", "Make a running engine look for plugins again", reload)
        ->footer("Example:\n  patchbay reload");
    add_command(commands, o, "drain", "Let a running engine finish its requests and end", drain)
        ->footer("Example:\n  patchbay drain");
}

}  // namespace patchbay::cli
