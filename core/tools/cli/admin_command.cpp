#include "cli/commands.hpp"

#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "base/suggest.hpp"
#include "cli/print_table.hpp"
#include "cli/running_engine.hpp"
#include "engine/swap/swap_slot.hpp"
#include "engine/swap/together.hpp"
#include "serve/admin_client.hpp"
#include "serve/fields.hpp"

namespace patchbay::cli {
namespace {

using serve::Json;

struct AdminOptions {
    RunningEngineFlags engine;
    std::string kind, plugin;
    std::vector<std::string> settings; // key=value
    bool as_json = false;
};

std::string text_of(const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

// What the server says, or refuses: {"error": {"message": …, "code": …}}.
Result<Json> ask(const AdminOptions& o, const char* method, const char* path, const std::string& body = {}) {
    PB_TRY(const serve::AdminAddress address, running_engine(o.engine));
    PB_TRY(const serve::HttpResponse answer, serve::ask_admin(address, method, path, body));
    auto json = serve::parse_body(answer.body);
    if (!json) return prefixed(address.text() + " is not an admin address of an engine", json.failure());
    if (const auto error = json->find("error"); error != json->end() && error->is_object())
        return fail(status_code_of(text_of(error->value("code", Json()))),
                    address.text() + ": " + error->value("message", "HTTP " + std::to_string(answer.status)));
    return json;
}

void print_json(const Json& json) { std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n'; }

// ---- what /status and the swaps of /swap say ----
using Rows = std::vector<std::vector<std::string>>;
constexpr size_t kHashDigits = 12; // enough to distinguish two builds

std::string reason_of(const Json& swap) {
    const std::string phase = text_of(swap.at("phase")), reason = text_of(swap.at("reason"));
    if (phase.empty()) return "-";
    return "in phase " + phase + (reason.empty() ? "" : ": " + reason);
}

void print_slots(const Json& slots) {
    Rows rows = {{"SLOT", "PLUGIN", "VERSION", "DIGEST", "GENERATION", "PARAMETERS"}};
    for (const Json& s : slots)
        rows.push_back({text_of(s.at("kind")), text_of(s.at("plugin")), text_of(s.at("version")),
                        text_of(s.at("sha256")).substr(0, kHashDigits),
                        text_of(s.at("generation")) + (s.at("on_probation").get<bool>() ? ", on probation" : ""),
                        s.at("params").empty() ? "-" : params_text(s.at("params"))});
    std::cout << '\n';
    print_table(rows);
}

void print_configuration(const Json& settings) {
    if (settings.empty()) return;
    Rows rows = {{"SETTING", "REQUESTED", "EFFECTIVE", "REASON"}};
    for (const Json& s : settings)
        rows.push_back({text_of(s.at("key")), text_of(s.at("requested")), text_of(s.at("effective")),
                        text_of(s.at("reason"))});
    std::cout << '\n';
    print_table(rows);
}

void print_swaps(const Json& swaps) {
    Rows rows = {{"SWAP", "FROM", "TO", "OUTCOME", "STEP", "PAUSE", "REASON"}};
    for (const Json& s : swaps.at("pending"))
        rows.push_back({text_of(s.at("kind")), s.at("from").is_null() ? "-" : text_of(s.at("from")),
                        text_of(s.at("plugin")), text_of(s.at("state")), "-", "-", "-"});
    for (const Json& s : swaps.at("last")) {
        const auto step = s.at("step").get<uint64_t>();
        const Json& number = s.at("transaction"); // of several that succeed or fail together
        rows.push_back({text_of(s.at("kind")) + (number.is_null() ? "" : " (transaction " + number.dump() + ")"),
                        text_of(s.at("from").at("plugin")), text_of(s.at("to").at("plugin")),
                        text_of(s.at("outcome")), step ? std::to_string(step) : "-",
                        step ? std::to_string(static_cast<int64_t>(s.at("pause_us").get<double>() + 0.5)) + " us" : "-",
                        reason_of(s)});
    }
    if (rows.size() == 1) return;
    std::cout << '\n';
    print_table(rows);
}

void print_restarts(const Json& restarts) {
    if (restarts.empty()) return;
    Rows rows = {{"RESTART", "SLOT", "PLUGIN", "DIGEST", "CALL", "REASON", "NEXT"}};
    for (const Json& r : restarts)
        rows.push_back({text_of(r.at("time")), text_of(r.at("kind")), text_of(r.at("plugin")),
                        text_of(r.at("sha256")).substr(0, kHashDigits),
                        r.at("call").is_null() ? "-" : text_of(r.at("call")), text_of(r.at("reason")),
                        text_of(r.at("next"))});
    std::cout << '\n';
    print_table(rows);
}

void print_status(const Json& s) {
    const Json &queues = s.at("queues"), &pages = s.at("pages");
    const std::string reason = text_of(s.at("reason"));
    std::cout << printable(text_of(s.at("model").at("name"))) << ": " << text_of(s.at("state"))
              << (reason.empty() ? "" : ": " + printable_message(reason)) << ", " << s.at("steps") << " steps ("
              << printable(text_of(s.at("task"))) << ", pid " << s.at("pid") << ", patchbay "
              << printable(text_of(s.at("version"))) << ")\n";
    std::cout << "requests: " << queues.at("running") << " running, " << queues.at("waiting") << " waiting, "
              << queues.at("inbox") << " in the inbox\n";
    std::cout << "pages: " << pages.at("used") << " used, " << pages.at("cached") << " cached, " << pages.at("free")
              << " free of " << pages.at("total") << '\n';
    print_slots(s.at("slots"));
    print_configuration(s.at("configuration"));
    print_swaps(s.at("swaps"));
    print_restarts(s.at("restarts"));
}

// "swap scheduler fcfs→sjf: refused in phase load: cannot read state 'fcfs/1'"
std::string swap_text(const Json& s) {
    const std::string from = text_of(s.at("from").at("plugin"));
    std::string out = "swap " + text_of(s.at("kind")) + " " + (from.empty() ? "none" : from) + "→" +
                      text_of(s.at("to").at("plugin")) + ": " + text_of(s.at("outcome"));
    if (!s.at("phase").is_null()) out += " " + reason_of(s);
    return out;
}

// ---- the commands ----
Result<> status(const AdminOptions& o) {
    PB_TRY(const Json json, ask(o, "GET", "/status"));
    if (o.as_json) print_json(json);
    else print_status(json);
    return {};
}

Json params_of(const std::vector<std::string>& settings) {
    Json out = Json::object();
    for (const std::string& setting : settings) {
        const size_t equals = setting.find('=');
        out[setting.substr(0, equals)] = setting.substr(equals + 1);
    }
    return out;
}

Result<> set(const AdminOptions& o) {
    const Json body{{"kind", o.kind}, {"params", params_of(o.settings)}};
    PB_TRY(const Json json, ask(o, "POST", "/set", body.dump(-1, ' ', false, Json::error_handler_t::replace)));
    if (o.as_json) {
        print_json(json);
        return {};
    }
    for (const auto& [name, value] : json.at("params").items())
        std::cout << printable(name) << '=' << printable(value.get<std::string>()) << '\n';
    return {};
}

struct Part { // of a swap: a slot, and what takes it
    std::string kind, plugin;
    std::vector<std::string> settings;
};

// KIND PLUGIN [KEY=VALUE …], as often as there are slots.
Result<std::vector<Part>> parts_of(const AdminOptions& o) {
    std::vector<Part> out = {{o.kind, o.plugin, {}}};
    for (size_t i = 0; i < o.settings.size(); ++i) {
        const std::string& word = o.settings[i];
        if (const size_t equals = word.find('='); equals != 0 && equals != std::string::npos) {
            out.back().settings.push_back(word);
            continue;
        }
        if (!engine::swap_slot(word))
            return invalid("got '" + word + "', expected KEY=VALUE, or the KIND and the PLUGIN of a further slot" +
                           did_you_mean(word, engine::swap_slots()));
        if (i + 1 == o.settings.size()) return invalid("'" + word + "' is without its PLUGIN");
        out.push_back({word, o.settings[++i], {}});
    }
    return out;
}

Json body_of(const Part& part) {
    const bool is_model = part.kind == name_of(engine::SwapSlot::kModel); // which the engine opens, in another folder
    const std::string plugin =
        is_model ? std::filesystem::absolute(part.plugin).lexically_normal().string() : part.plugin;
    return {{"kind", part.kind}, {"plugin", plugin}, {"params", params_of(part.settings)}};
}

void print_outcome(const Json& s) {
    std::cout << printable_message(swap_text(s));
    if (s.at("outcome") == "committed") {
        std::cout << " (step " << s.at("step") << ", pause " << std::lround(s.at("pause_us").get<double>()) << " us)\n";
        return;
    }
    std::cout << (s.at("outcome") == "posted" ? ": it waits for an earlier swap to end"
                                              : ": the engine is idle, or its steps have not called it often enough")
              << "; `patchbay status` shows the outcome once it is known\n";
}

// Of those that failed, the one that made the others fail with it.
const Json& cause_among(const Json& swaps) {
    for (const Json& s : swaps)
        if (s.at("phase") != engine::kTogether) return s;
    return swaps.front();
}

Result<> swap(const AdminOptions& o) {
    PB_TRY(const std::vector<Part> parts, parts_of(o));
    Json body = body_of(parts.front());
    if (parts.size() > 1) {
        Json list = Json::array();
        for (const Part& part : parts) list.push_back(body_of(part));
        body = Json{{"swaps", std::move(list)}};
    }
    const auto text = body.dump(-1, ' ', false, Json::error_handler_t::replace);
    PB_TRY(const Json json, ask(o, "POST", "/swap", text));
    const std::string outcome = json.at("outcome");
    const Json swaps = parts.size() > 1 ? json.at("swaps") : Json::array({json});
    if (o.as_json) print_json(json);
    if (outcome == "refused" || outcome == "rolled back") {
        const Json& cause = cause_among(swaps);
        std::string others;
        for (const Json& s : swaps)
            if (&s != &cause)
                others += (others.empty() ? "; all slots of the swap stay as they were: " : ", ") +
                          s.at("kind").get<std::string>() + " " + s.at("from").at("plugin").get<std::string>();
        return fail(status_code_of(text_of(cause.value("code", Json()))), swap_text(cause) + others);
    }
    if (o.as_json) return {};
    for (const Json& s : swaps) print_outcome(s);
    return {};
}

Result<> reload(const AdminOptions& o) {
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

Result<> drain(const AdminOptions& o) {
    PB_TRY(const Json json, ask(o, "POST", "/drain"));
    if (o.as_json) print_json(json);
    else std::cout << "draining: " << json.at("unfinished") << " requests to finish, then the engine ends\n";
    return {};
}

void check_flags(const AdminOptions& o) { check(o.engine); }

void check_kind(const AdminOptions& o) {
    check_flags(o);
    if (!engine::swap_slot(o.kind))
        throw CLI::ValidationError("KIND", "got '" + o.kind + "', expected " + engine::one_of(engine::swap_slots()) +
                                               ", which can be swapped" + did_you_mean(o.kind, engine::swap_slots()));
}

void check_swap(const AdminOptions& o) {
    check_kind(o);
    if (const auto parts = parts_of(o); !parts) throw CLI::ValidationError("SETTING", parts.error());
}

void check_set(const AdminOptions& o) {
    check_kind(o);
    for (const std::string& setting : o.settings)
        if (const size_t equals = setting.find('='); equals == 0 || equals == std::string::npos)
            throw CLI::ValidationError("SETTING", "got '" + setting + "', expected KEY=VALUE");
}

CLI::App* add_command(Commands& commands, const std::shared_ptr<AdminOptions>& o, const char* name,
                      const char* description,
                      Result<> (*action)(const AdminOptions&), void (*check_all)(const AdminOptions&) = check_flags) {
    CLI::App* app = commands.app.add_subcommand(name, description);
    add_flags_of_running_engine(*app, std::shared_ptr<RunningEngineFlags>(o, &o->engine));
    app->add_flag("--json", o->as_json, "as JSON");
    set_action(commands, app, o, {.run = action, .check = check_all});
    return app;
}

}  // namespace

void add_admin_commands(Commands& commands) {
    const auto o = std::make_shared<AdminOptions>();
    add_command(commands, o, "status", "Show what a running engine does: slots, queues, pages, swaps", status)
        ->footer(
            "Examples:\n"
            "  patchbay status\n"
            "  patchbay status --admin 10.0.0.7:9000 --admin-token-file token --json");
    CLI::App* app = add_command(commands, o, "swap", "Put another plugin into a slot of a running engine", swap,
                                check_swap);
    app->add_option("KIND", o->kind, engine::one_of(engine::swap_slots()))->required();
    app->add_option("PLUGIN", o->plugin, "plugin name as in the YAML; for a model: the folder or file of its weights")
        ->required();
    app->add_option("SETTING", o->settings,
                    "KEY=VALUE of the plugin's parameters; then KIND PLUGIN SETTING… of further slots, which succeed "
                    "or fail together");
    app->footer(
        "Examples:\n"
        "  patchbay swap scheduler sjf ageing=10\n"
        "  patchbay swap sampler greedy --admin ./admin.sock\n"
        "  patchbay swap model checkpoints/step-2000\n"
        "  patchbay swap scheduler sjf ageing=10 sampler greedy\n"
        "Exit codes: 0 done, 1 refused or rolled back, 2 bad usage.");
    app = add_command(commands, o, "set", "Change hot parameters of a plugin in a running engine", set, check_set);
    app->add_option("KIND", o->kind, engine::one_of(engine::swap_slots()))->required();
    app->add_option("SETTING", o->settings, "KEY=VALUE; `patchbay plugin info` shows which change live")->required();
    app->footer("Example:\n  patchbay set scheduler ageing=10");
    add_command(commands, o, "reload", "Make a running engine look for plugins again", reload)
        ->footer("Example:\n  patchbay reload");
    add_command(commands, o, "drain", "Let a running engine finish its requests and end", drain)
        ->footer("Example:\n  patchbay drain");
}

}  // namespace patchbay::cli
