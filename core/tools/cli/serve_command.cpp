#include "cli/commands.hpp"

#include <spdlog/spdlog.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/clock.hpp"
#include "base/printable.hpp"
#include "cli/admin_flags.hpp"
#include "cli/engine_flags.hpp"
#include "cli/flag_checks.hpp"
#include "cli/plugin_dirs.hpp"
#include "cli/print_error.hpp"
#include "cli/step_file_flags.hpp"
#include "cli/supervise.hpp"
#include "config/load.hpp"
#include "config/slots.hpp"
#include "engine/simulation.hpp"
#include "engine/trace/step_files.hpp"
#include "execution/model_choice.hpp"
#include "parallel/world.hpp"
#include "serve/server.hpp"

namespace patchbay::cli {
namespace {

struct ServeOptions {
    EngineFlags engine;
    serve::ServerOptions server;
    serve::ModelNames names;
    uint32_t max_prompt_tokens = 0, max_output_tokens = 0;
    AdminFlags admin;
    engine::StepFilePaths files;
    bool supervise = false;
    serve::SlotHistory::Choices choices; // of slots, in place of the configured ones
};

// Without the default one the server starts all the same; check_usage() has checked one that was named.
void choose_admin_address(ServeOptions& o, const config::EngineConfig& config) {
    if (o.admin.none()) return;
    auto options = admin_options(o.admin, o.engine.plugin_dirs, config);
    if (!options) return spdlog::warn("cannot open the admin address: {}", options.error());
    options->ledger = o.server.ledger;
    o.server.admin = *std::move(options);
}

// What was in the slots before a plugin ended the server. A model that took the place of the configured one as a whole
// has its own chat template, and the names of both; other weights are served under the name of the first ones.
void put_back(const serve::SlotHistory::Choices& choices, config::EngineConfig& c, serve::ModelNames& names) {
    for (const auto& [kind, choice] : choices) {
        const config::SlotInfo* const slot = config::find_slot(kind);
        if (!slot && choice.new_engine) {
            const std::string& path = choice.plugin.plugin;
            if (names.served.empty())
                names.served = {serve::default_model_name(path), serve::default_model_name(c.model.path)};
            names.chat_template_file.clear();
            c = serve::with_model(std::move(c), path);
        } else if (!slot) {
            if (names.served.empty() && !c.model.path.empty())
                names.served = {serve::default_model_name(c.model.path)};
            c = execution::with_weights(std::move(c), choice.plugin.plugin);
        } else if (slot->choice) {
            c.*(slot->choice) = choice.plugin;
        } else {
            c.*(slot->optional_choice) = choice.plugin;
        }
    }
}

// The chat template of a flag is that of the first model.
Result<serve::ServedModel> served(const ServeOptions& o, const serve::ModelNames& names, const config::EngineConfig& c,
                                  const engine::Engine& engine) {
    PB_TRY(auto model, serve::served_model(c, engine, names));
    model.max_prompt_tokens = o.max_prompt_tokens;
    model.max_output_tokens = o.max_output_tokens;
    return model;
}

Result<> serve_engine(ServeOptions& o, const host::Registry& registry, config::Loaded loaded) {
    serve::ModelNames names = o.names;
    put_back(o.choices, loaded.config, names);
    PB_TRY(const auto clock, engine::clock_for(loaded.config, registry));
    choose_admin_address(o, loaded.config);
    metrics::Metrics all;
    engine::PluginMetrics plugin_metrics(all);
    parallel::World world;
    PB_TRY(auto engine, engine::Engine::create(loaded.config, registry, *clock, &plugin_metrics, &world));
    PB_CHECK(engine->files().write(o.files));
    PB_TRY(auto model, served(o, names, loaded.config, *engine));
    o.server.make_engine = [&](const config::EngineConfig& c, const host::Registry& found) -> Result<serve::NewEngine> {
        PB_TRY(auto made, engine::Engine::create(c, found, *clock, &plugin_metrics, &world));
        PB_TRY(auto of_it, served(o, {o.names.served, {}, o.names.generation_config}, c, *made));
        return serve::NewEngine{std::move(made), std::move(of_it)};
    };
    const std::string name = model.names.front(), sampling = model.default_sampling.text,
                      no_embeddings = model.pooler.refusal ? model.pooler.refusal->text : "";
    if (const char* key = std::getenv("PATCHBAY_API_KEY"); key && *key) o.server.api_keys.emplace_back(key);
    o.server.version = PATCHBAY_VERSION;
    o.server.max_hang_s = loaded.config.swap.max_hang_s;

    PB_TRY(const auto server, serve::Server::start(o.server, std::move(engine), std::move(model), all));
    server->stop_on_signals();
    serve::AdminAddress where;
    where.host = server->http().address();
    where.port = server->port();
    std::string started = "serving " + name + " on " + where.text() + "\n";
    if (!sampling.empty()) started += "sampling defaults of the model's generation_config.json: " + sampling + "\n";
    if (!no_embeddings.empty()) started += "embeddings are refused: " + no_embeddings + "\n";
    if (server->admin()) started += "admin address: " + server->admin()->address().text() + "\n";
    std::cerr << started << std::flush;
    server->wait();
    const auto failure = server->failure();
    server->stop();
    if (failure) return fail("the engine has failed: " + *failure);
    return {};
}

Result<> run(ServeOptions& o) {
    PB_TRY(const auto registry, registry_of(o.engine.plugin_dirs));
    PB_TRY(auto loaded, load_engine(o.engine, registry));
    print_warnings(loaded);
    return in_one_line(serve_engine(o, registry, std::move(loaded)));
}

int run_to_end(ServeOptions& o) {
    return exit_code("patchbay serve", run(o));
}

// "trace.2.json" after the second restart: what the servers before it have written stays.
std::string numbered(const std::filesystem::path& file, uint32_t restarts) {
    if (file.empty() || restarts == 0) return file;
    const std::string name = file.stem().string() + "." + std::to_string(restarts) + file.extension().string();
    return file.parent_path() / name;
}

int run_supervised(ServeOptions& o) {
    const Result<int> code =
        supervise(o.server.http.host, o.server.http.port, [&o](const Supervised& given) {
            o.server.http.listener = given.listener;
            o.server.ledger = given.ledger;
            o.choices = given.choices;
            for (std::string* file : {&o.files.trace, &o.files.decisions, &o.files.kv_events})
                *file = numbered(*file, given.restarts);
            return run_to_end(o);
        });
    if (code) return *code;
    print_error("patchbay serve", code.error());
    return kFailed;
}

void add_limits(CLI::App& app, ServeOptions& o) {
    serve::HttpOptions& http = o.server.http;
    add_number(app, "--max-requests", o.server.max_requests,
               "requests for text, embeddings or tokens in progress; more get 429", 1);
    app.add_option("--max-requests-per-key", o.server.key_limits.max_requests,
                   "requests in progress per API key; more get 429 (default: no limit)")
        ->transform(within<uint32_t>(1));
    app.add_option("--requests-per-minute", o.server.key_limits.requests_per_minute,
                   "requests per minute and API key, on average; more get 429 (default: no limit)")
        ->transform(within<uint32_t>(1));
    app.add_flag("--prefix-cache-per-key", o.server.prefix_cache_per_key,
                 "requests of two API keys share no cached KV, so that no client can infer other clients' prompts "
                 "from its TTFT");
    app.add_option("--max-prompt-tokens", o.max_prompt_tokens,
                   "maximum length of a prompt, in tokens (default: what max_model_len allows)")
        ->transform(within<uint32_t>(1));
    app.add_option("--max-output-tokens", o.max_output_tokens, "max_tokens of a request, and its default in chats")
        ->transform(within<uint32_t>(1));
    add_number(app, "--max-body-bytes", http.max_body_bytes, "maximum size of a request body", 1);
    add_number(app, "--max-header-bytes", http.max_header_bytes, "maximum size of the request headers", 256, 1u << 20);
    add_number(app, "--max-connections", http.max_connections, "maximum number of open connections; more get 503", 1);
    constexpr uint32_t kDay = 86'400;
    add_number(app, "--keep-alive-timeout", http.keep_alive_seconds, "seconds that a connection may be idle", 1, kDay);
    add_number(app, "--read-timeout", http.read_seconds, "seconds from a request's first byte to its last", 1, kDay);
    add_number(app, "--write-timeout", http.write_seconds,
               "seconds after which a client that reads nothing counts as disconnected", 1, kDay);
    add_number(app, "--http-threads", http.threads, "threads that serve connections", 1, 256);
}

void check_usage(const ServeOptions& o) {
    for (const std::string& key : o.server.api_keys)
        if (key.empty()) throw CLI::ValidationError("--api-key", "is empty");
    check(o.admin);
    const bool has_model = std::ranges::any_of(
        o.engine.overrides, [](const config::Override& set) { return set.path == "model.path"; });
    if (o.engine.config_file.empty() && !has_model)
        throw CLI::ValidationError("no model", "give --model DIR or --config FILE");
}

}  // namespace

void add_serve_command(Commands& commands) {
    CLI::App* app = commands.app.add_subcommand("serve", "Serve a model over HTTP, by OpenAI's API");
    app->footer(
        "Examples:\n"
        "  patchbay serve --model models/demo-target\n"
        "  patchbay serve --config engine.yaml --host 0.0.0.0 --port 80 --api-key SECRET\n"
        "  curl http://127.0.0.1:8000/v1/completions -d '{\"prompt\": \"Once upon a time\", \"stream\": true}'\n"
        "SIGTERM lets the requests in progress finish; a second one aborts them.");
    auto o = std::make_shared<ServeOptions>();
    add_engine_flags(*app, std::shared_ptr<EngineFlags>(o, &o->engine));
    const KeyFlags key(*app, std::shared_ptr<config::Overrides>(o, &o->engine.overrides));
    key("--pooling-type", "pooler_config.pooling_type", "pooling of embeddings: LAST or MEAN (default: the model's)");
    app->add_option("--host", o->server.http.host, "address to listen on")->capture_default_str();
    app->add_option("--port", o->server.http.port, "port to listen on (0: any free one)")
        ->transform(within<uint32_t>(0, 65'535))
        ->capture_default_str();
    app->add_option("--allowed-origins", o->server.http.allowed_origins,
                    "origin of pages in browsers that may use the server, such as https://example.org, or * for any; "
                    "may be given several times (default: none)")
        ->allow_extra_args(false);
    app->add_option("--api-key", o->server.api_keys,
                    "API key that requests must have; may be given several times (also PATCHBAY_API_KEY)")
        ->allow_extra_args(false);
    add_admin_flags(*app, std::shared_ptr<AdminFlags>(o, &o->admin));
    app->add_option("--served-model-name", o->names.served,
                    "name of the model in requests; may be given several times (default: the folder's name)")
        ->allow_extra_args(false);
    app->add_option("--chat-template", o->names.chat_template_file, "file with a Jinja template (default: the model's)")
        ->check(CLI::ExistingFile);
    app->add_option_function<std::string>(
           "--generation-config", [o](const std::string& word) { o->names.generation_config = word == "auto"; },
           "auto: sampling parameters in the model's generation_config.json are the defaults of requests; none: they "
           "are not (default: auto)")
        ->check(CLI::IsMember({"auto", "none"}));
    app->add_flag("--supervise", o->supervise,
                  "restart the server after a plugin has ended its process, with the plugin that was in the slot "
                  "before");
    add_step_file_flags(*app, std::shared_ptr<engine::StepFilePaths>(o, &o->files));
    app->add_option_function<std::vector<std::string>>(
           "--metrics-compat",
           [o](const std::vector<std::string>& names) { o->server.vllm_metrics = !names.empty(); },
           "export metrics under the names of another engine, too: vllm")
        ->allow_extra_args(false)
        ->check(CLI::IsMember({"vllm"}));
    add_limits(*app, *o);
    app->callback([&commands, o] {
        check_usage(*o);
        commands.parallel = [o] { return parallel_of(o->engine); };
        commands.chosen = [o] {
            std::signal(SIGPIPE, SIG_IGN); // a reader of the log that goes away ends no server
            return o->supervise ? run_supervised(*o) : run_to_end(*o);
        };
    });
}

}  // namespace patchbay::cli
