#include "serve/server.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <ctime>

#include "base/clock.hpp"
#include "base/crash_report.hpp"
#include "base/printable.hpp"
#include "serve/error_reply.hpp"
#include "serve/lost_answers.hpp"

namespace patchbay::serve {

struct Server::Signals {
    explicit Signals(Server& server) : set(io, SIGINT, SIGTERM) {
        wait(server);
        thread = std::thread([this] { io.run(); });
    }
    ~Signals() {
        io.stop();
        thread.join();
    }
    void wait(Server& server) {
        set.async_wait([this, &server](const boost::system::error_code& error, int) {
            if (error) return;
            if (server.draining_.load()) return server.engine_->stop(); // wait() returns, and the rest is stopped then
            server.drain();
            wait(server);
        });
    }
    boost::asio::io_context io;
    boost::asio::signal_set set;
    std::thread thread;
};

Result<std::unique_ptr<Server>> Server::start(const ServerOptions& options, std::unique_ptr<engine::Engine> engine,
                                              ServedModel model, metrics::Metrics& metrics) {
    std::unique_ptr<Server> out(new Server(options, std::move(engine), std::move(model), metrics));
    const Routes& routes = out->routes_;
    HttpOptions http = options.http;
    http.on_rejection = [&all = out->metrics_](const char* reason) { all.on_rejection(reason); };
    PB_TRY(out->http_, HttpServer::start(http, [&routes](const auto& exchange) { routes.handle(exchange); }));
    PB_CHECK(out->start_admin());
    at_crash(answer_all_lost);
    return out;
}

Result<> Server::start_admin() {
    if (!options_.admin) return {};
    const auto model = [this] {
        const auto serving = gate_.serving();
        return ShownModel{serving->model.names.front(), serving->model.root, serving->facts};
    };
    auto admin = Admin::start(*options_.admin, {*engine_, journal_, metrics_, model, "serve", options_.version,
                                                [this] { drain(); }, [this] { return metrics_text(); }, {},
                                                replacement_.get()});
    if (admin) admin_ = *std::move(admin);
    else if (options_.admin->required) return admin.failure();
    else spdlog::warn("there is no admin address: {}", admin.error());
    return {};
}

Server::Server(const ServerOptions& options, std::unique_ptr<engine::Engine> engine, ServedModel model,
               metrics::Metrics& metrics)
    : options_(options), gate_({std::move(model), engine->facts()}), metrics_(metrics), all_metrics_(metrics),
      journal_(engine->facts().plugins), routes_(routes(), options.api_keys, metrics_), tenant_tokens_(metrics),
      key_limits_(options.key_limits, [] { return RealClock().now_ns(); }) {
    observe(engine->facts(), gate_.serving()->model);
    if (options.ledger) options.ledger->first(engine->facts().plugins);
    service::EngineThreadOptions observers;
    observers.on_request = [this](engine::RequestId id, const engine::Request& r) {
        engine_metrics_->on_request(id, r.arrival_ns, static_cast<uint32_t>(r.prompt.size()), r.sampling.n);
        tenant_tokens_.on_request(id, r);
        if (vllm_metrics_) vllm_metrics_->on_request(id, r);
    };
    observers.on_output = [this](const engine::RequestOutput& out) {
        engine_metrics_->on_output(out);
        tenant_tokens_.on_output(out);
        if (vllm_metrics_) vllm_metrics_->on_output(out);
    };
    observers.on_step = [this](const engine::StepReport& report) {
        engine_metrics_->on_step(report);
        journal_.on_step(report);
        if (options_.ledger)
            for (const host::SwapRecord& r : report.swaps) options_.ledger->settled(r);
        if (vllm_metrics_) vllm_metrics_->on_step(report);
    };
    observers.max_hang_s = options.max_hang_s;
    observers.max_inbox = std::max<size_t>(options.max_requests, 4096);
    engine_ = std::make_unique<service::EngineThread>(std::move(engine), std::move(observers));
    replacement_ = std::make_unique<ModelReplacement>(ModelReplacement::Parts{
        *engine_, gate_, journal_, options.make_engine,
        [this](const engine::Engine& now, const ServedModel& served) { observe(now.facts(), served); }});
}

void Server::observe(const engine::EngineFacts& facts, const ServedModel& model) {
    engine_metrics_.reset(); // what is about the present ends with it
    engine_metrics_.emplace(all_metrics_, facts, options_.version);
    vllm_metrics_.reset();
    if (options_.vllm_metrics) vllm_metrics_.emplace(all_metrics_, model.names.front(), facts);
}

Server::~Server() { stop(); }

bool Server::ready() const { return !draining_ && engine_->status().state == service::ServiceState::kRunning; }

std::optional<std::string> Server::failure() const {
    const service::ServiceStatus status = engine_->status();
    if (status.state != service::ServiceState::kFailed) return std::nullopt;
    return status.reason;
}

void Server::drain() {
    const std::lock_guard lock(mutex_);
    if (draining_.exchange(true)) return;
    drainer_ = std::thread([this] {
        gate_.wait_until_calm(); // those that wait for another model are under way, too
        engine_->drain();
        http_->stop_listening();
        http_->wait_until_closed(); // of each connection the last answer is sent, or its deadline has passed
        engine_->stop();
    });
}

void Server::wait() { engine_->wait(); }
void Server::stop_on_signals() { signals_ = std::make_unique<Signals>(*this); }

void Server::stop() {
    signals_.reset();
    if (engine_) engine_->stop(); // no stream calls back after this
    if (admin_) admin_->stop();
    if (http_) http_->stop();
    gate_.end();
    const std::lock_guard lock(mutex_);
    if (drainer_.joinable()) drainer_.join();
}

std::shared_ptr<void> Server::permit() {
    if (under_way_.fetch_add(1) >= options_.max_requests) {
        under_way_ -= 1;
        return nullptr;
    }
    return {this, [](Server* server) { server->under_way_ -= 1; }};
}

std::shared_ptr<void> Server::admit(const std::shared_ptr<Exchange>& exchange) {
    KeyLimits::Admitted of_key = key_limits_.admit(*routes_.keys().find(exchange->request()));
    if (!of_key.permit) {
        metrics_.on_rejection("key_limit");
        HttpResponse reply = error_reply(fail(StatusCode::kExhausted, of_key.why));
        for (auto& [name, value] : reply.headers)
            if (name == "Retry-After") value = std::to_string(of_key.retry_after_s);
        routes_.answer(exchange, std::move(reply));
        return nullptr;
    }
    std::shared_ptr<void> of_all = permit();
    if (!of_all) {
        metrics_.on_rejection("busy");
        routes_.refuse(exchange, fail(StatusCode::kExhausted, std::to_string(options_.max_requests) +
                                                                  " requests are under way, no more fit now"));
        return nullptr;
    }
    return std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(std::move(of_key.permit),
                                                                                  std::move(of_all));
}

// ---- text ----

void Server::completions(const std::shared_ptr<Exchange>& e) { generate(e, read_completion, "cmpl-"); }
void Server::chat_completions(const std::shared_ptr<Exchange>& e) { generate(e, read_chat, "chatcmpl-"); }
void Server::embeddings(const std::shared_ptr<Exchange>& e) { generate(e, read_embedding, "embd-"); }

void Server::generate(const std::shared_ptr<Exchange>& exchange, Read read, const char* id_prefix) {
    if (draining_) {
        metrics_.on_rejection("draining");
        return routes_.refuse(exchange,
                              fail(StatusCode::kUnavailable, "the server is draining, and takes no requests"));
    }
    std::shared_ptr<void> held = admit(exchange);
    if (!held) return;
    const auto go_on = [this, exchange, read, id_prefix, held = std::move(held)](const ModelGate::Entered& entered) {
        read_and_submit(exchange, read, id_prefix, held, entered);
    };
    gate_.enter(go_on);
}

void Server::read_and_submit(const std::shared_ptr<Exchange>& exchange, Read read, const char* id_prefix,
                             std::shared_ptr<void> held, ModelGate::Entered entered) {
    const auto work = [this, exchange, read, id_prefix, held = std::move(held), entered = std::move(entered)] {
        const uint64_t begin = RealClock().now_ns();
        auto body = parse_body(exchange->request().body);
        if (!body) return routes_.refuse(exchange, body.failure());
        ReadRequest got = read(*body, entered.serving->model);
        metrics_.on_tokenized(RealClock().now_ns() - begin);
        if (got.refusal) return routes_.refuse(exchange, got.refusal->failure, got.refusal->param);
        const auto& structure = got.request.sampling.structured_outputs;
        if (structure)
            if (const auto compiled = engine_->compile_grammar(*structure); !compiled)
                return routes_.refuse(exchange, refused_as(StatusCode::kInvalid, compiled).failure(),
                                      "structured_outputs");
        exchange->post([this, exchange, id_prefix, held, entered, request = std::move(got.request)]() mutable {
            submit(exchange, std::move(request), id_prefix, std::move(held), entered.serving);
        });
    };
    // What may take long is not done on a thread that serves connections.
    constexpr size_t kLongBody = 32u << 10;
    const std::string& text = exchange->request().body;
    const bool slow = text.size() > kLongBody || text.find("json") != text.npos || text.find("guided_") != text.npos ||
                      text.find("structured_outputs") != text.npos;
    if (slow) exchange->offload(work);
    else work();
}

void Server::submit(const std::shared_ptr<Exchange>& exchange, GenerationRequest request, const char* id_prefix,
                    std::shared_ptr<void> held, const std::shared_ptr<const Serving>& serving) {
    const std::string_view given = exchange->request().header("x-request-id");
    const bool usable = !given.empty() && given.size() <= 64 &&
                        std::all_of(given.begin(), given.end(), [](char c) { return c > ' ' && c < 0x7F; });
    char number[20];
    std::snprintf(number, sizeof number, "%llx", static_cast<unsigned long long>(next_id_++));
    std::string id = id_prefix + (usable ? std::string(given) : std::to_string(serving->model.created) + "-" + number);
    const auto answered = [this, route = routes_.name_of(exchange->request().path)](const HttpResponse& response) {
        metrics_.on_answer(route, response.status);
        if (response.status == 429) metrics_.on_rejection("busy");
    };
    const uint32_t key = *routes_.keys().find(exchange->request());
    if (options_.prefix_cache_per_key) request.cache_salt = "key " + std::to_string(key) + ": " + request.cache_salt;
    const std::shared_ptr<const ServedModel> model(serving, &serving->model);
    std::make_shared<Generation>(Generation::Context{*engine_, model, answered, metrics_}, exchange,
                                 std::move(request), std::move(id), static_cast<int64_t>(std::time(nullptr)),
                                 std::move(held))
        ->start(key);
}

}  // namespace patchbay::serve
