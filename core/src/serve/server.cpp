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
    auto admin = Admin::start(*options_.admin,
                              {*engine_, journal_, metrics_, model_.names.front(), model_.root, "serve", facts_,
                               options_.version, [this] { drain(); }, [this] { return metrics_text(); }});
    if (admin) admin_ = *std::move(admin);
    else if (options_.admin->required) return admin.failure();
    else spdlog::warn("there is no admin address: {}", admin.error());
    return {};
}

Server::Server(const ServerOptions& options, std::unique_ptr<engine::Engine> engine, ServedModel model,
               metrics::Metrics& metrics)
    : options_(options), model_(std::move(model)), facts_(engine->facts()), metrics_(metrics),
      journal_(facts_.plugins), routes_(routes(), options.api_keys, metrics_),
      engine_metrics_(metrics, engine->facts(), options.version), tenant_tokens_(metrics),
      key_limits_(options.key_limits, [] { return RealClock().now_ns(); }) {
    if (options.vllm_metrics) vllm_metrics_.emplace(metrics, model_.names.front(), engine->facts());
    if (options.ledger) options.ledger->first(facts_.plugins);
    service::EngineThreadOptions observers;
    observers.on_request = [this](engine::RequestId id, const engine::Request& r) {
        engine_metrics_.on_request(id, r.arrival_ns, static_cast<uint32_t>(r.prompt.size()), r.sampling.n);
        tenant_tokens_.on_request(id, r);
        if (vllm_metrics_) vllm_metrics_->on_request(id, r);
    };
    observers.on_output = [this](const engine::RequestOutput& out) {
        engine_metrics_.on_output(out);
        tenant_tokens_.on_output(out);
        if (vllm_metrics_) vllm_metrics_->on_output(out);
    };
    observers.on_step = [this](const engine::StepReport& report) {
        engine_metrics_.on_step(report);
        journal_.on_step(report);
        if (options_.ledger)
            for (const host::SwapRecord& r : report.swaps) options_.ledger->settled(r);
        if (vllm_metrics_) vllm_metrics_->on_step(report);
    };
    observers.max_inbox = std::max<size_t>(options.max_requests, 4096);
    engine_ = std::make_unique<service::EngineThread>(std::move(engine), std::move(observers));
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

void Server::generate(const std::shared_ptr<Exchange>& exchange, ReadRequest (*read)(const Json&, const ServedModel&),
                      const char* id_prefix) {
    if (draining_) {
        metrics_.on_rejection("draining");
        return routes_.refuse(exchange,
                              fail(StatusCode::kUnavailable, "the server is draining, and takes no requests"));
    }
    std::shared_ptr<void> held = admit(exchange);
    if (!held) return;
    const auto work = [this, exchange, read, id_prefix, held = std::move(held)] {
        const uint64_t begin = RealClock().now_ns();
        auto body = parse_body(exchange->request().body);
        if (!body) return routes_.refuse(exchange, body.failure());
        ReadRequest got = read(*body, model_);
        metrics_.on_tokenized(RealClock().now_ns() - begin);
        if (got.refusal) return routes_.refuse(exchange, got.refusal->failure, got.refusal->param);
        const auto& structure = got.request.sampling.structured_outputs;
        if (structure)
            if (const auto compiled = engine_->compile_grammar(*structure); !compiled)
                return routes_.refuse(exchange, refused_as(StatusCode::kInvalid, compiled).failure(),
                                      "structured_outputs");
        exchange->post([this, exchange, id_prefix, held, request = std::move(got.request)]() mutable {
            submit(exchange, std::move(request), id_prefix, std::move(held));
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
                    std::shared_ptr<void> held) {
    const std::string_view given = exchange->request().header("x-request-id");
    const bool usable = !given.empty() && given.size() <= 64 &&
                        std::all_of(given.begin(), given.end(), [](char c) { return c > ' ' && c < 0x7F; });
    char number[20];
    std::snprintf(number, sizeof number, "%llx", static_cast<unsigned long long>(next_id_++));
    std::string id = id_prefix + (usable ? std::string(given) : std::to_string(model_.created) + "-" + number);
    const auto answered = [this, route = routes_.name_of(exchange->request().path)](const HttpResponse& response) {
        metrics_.on_answer(route, response.status);
        if (response.status == 429) metrics_.on_rejection("busy");
    };
    const uint32_t key = *routes_.keys().find(exchange->request());
    if (options_.prefix_cache_per_key) request.cache_salt = "key " + std::to_string(key) + ": " + request.cache_salt;
    std::make_shared<Generation>(Generation::Context{*engine_, model_, answered, metrics_}, exchange,
                                 std::move(request), std::move(id), static_cast<int64_t>(std::time(nullptr)),
                                 std::move(held))
        ->start(key);
}

}  // namespace patchbay::serve
