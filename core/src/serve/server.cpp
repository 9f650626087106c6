#include "serve/server.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "base/clock.hpp"
#include "base/crash_report.hpp"
#include "serve/client_routes.hpp"
#include "serve/dashboard.hpp"
#include "serve/error_reply.hpp"
#include "serve/lost_answers.hpp"
#include "serve/reply.hpp"

namespace patchbay::serve {

class Server::Signals { // a thread that waits for SIGINT and SIGTERM
  public:
    explicit Signals(Server& server) : set_(io_, SIGINT, SIGTERM) {
        wait(server);
        thread_ = std::thread([this] { io_.run(); });
    }
    ~Signals() {
        io_.stop();
        thread_.join();
    }

  private:
    void wait(Server& server) {
        set_.async_wait([this, &server](const boost::system::error_code& error, int) {
            if (error) return;
            if (server.admission_.is_closed()) return server.engine_->stop(); // wait() returns; the rest stops then
            server.drain();
            wait(server);
        });
    }
    boost::asio::io_context io_;
    boost::asio::signal_set set_;
    std::thread thread_;
};

Result<std::unique_ptr<Server>> Server::start(const ServerOptions& options, std::unique_ptr<engine::Engine> engine,
                                              ServedModel model, metrics::Metrics& metrics) {
    std::unique_ptr<Server> out(new Server(options, std::move(engine), std::move(model), metrics));
    const Routes& routes = out->routes_;
    HttpOptions http = options.http;
    http.takes = [&routes](const HttpRequest& request) { return routes.takes(request); };
    http.on_rejection = [&all = out->metrics_](const char* reason) { all.on_rejection(reason); };
    PB_TRY(out->http_, HttpServer::listen(http, [&routes](const auto& exchange) { routes.handle(exchange); }));
    out->http_->run();
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
    auto admin = Admin::start(
        *options_.admin, {*engine_, observers_.journal(), metrics_, model, "serve", options_.version,
                          [this] { drain(); }, [this] { return metrics_text(); }, {}, replacement_.get()});
    if (admin) admin_ = *std::move(admin);
    else if (options_.admin->required) return admin.failure();
    else spdlog::warn("there is no admin address: {}", admin.error());
    return {};
}

Server::Server(const ServerOptions& options, std::unique_ptr<engine::Engine> engine, ServedModel model,
               metrics::Metrics& metrics)
    : options_(options), gate_({std::move(model), engine->facts()}), metrics_(metrics),
      routes_(options.api_keys, metrics_),
      admission_(options.max_requests, options.key_limits, [] { return RealClock().now_ns(); }),
      observers_({options.version, options.vllm_metrics, options.ledger}, metrics, engine->facts(),
                 gate_.serving()->model.names.front()) {
    service::EngineThreadOptions thread;
    thread.on_request = [this](engine::RequestId id, const engine::Request& r) { observers_.on_request(id, r); };
    thread.on_output = [this](const engine::RequestOutput& out) { observers_.on_output(out); };
    engine->observe(observers_);
    thread.max_hang_s = options.max_hang_s;
    thread.max_inbox = std::max<size_t>(options.max_requests, 4096);
    engine_ = std::make_unique<service::EngineThread>(std::move(engine), std::move(thread));
    const auto taken_over = [this](engine::Engine& now, const ServedModel& served) {
        now.observe(observers_);
        observers_.watch(now.facts(), served.names.front());
    };
    replacement_ = std::make_unique<ModelReplacement>(
        ModelReplacement::Parts{*engine_, gate_, observers_.journal(), options.make_engine, taken_over});
    routes_.add(operator_routes());
    routes_.add(model_routes(gate_, routes_));
    routes_.add(text_routes({*engine_, gate_, admission_, routes_, metrics_, options.prefix_cache_per_key}));
}

Server::~Server() { stop(); }

bool Server::ready() const {
    return !admission_.is_closed() && engine_->status().state == service::ServiceState::kRunning;
}

std::optional<std::string> Server::failure() const {
    const service::ServiceStatus status = engine_->status();
    if (status.state != service::ServiceState::kFailed) return std::nullopt;
    return status.reason;
}

void Server::drain() {
    const std::lock_guard lock(mutex_);
    if (!admission_.close()) return;
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

// ---- what operators ask ----

HttpResponse Server::metrics_text() {
    metrics_.scrape(http_->connections(), http_->exchanges());
    return {200, metrics_.text(), kMetricsType};
}

std::vector<Route> Server::operator_routes() {
    using ExchangePtr = std::shared_ptr<Exchange>;
    const auto health = [this](const ExchangePtr& e) {
        if (const auto why = failure())
            return routes_.refuse(e, fail(StatusCode::kUnavailable, "the engine has failed: " + *why));
        routes_.answer(e, {200, "", ""});
    };
    const auto readiness = [this](const ExchangePtr& e) {
        if (ready()) return routes_.answer(e, {200, "", ""});
        const auto state = admission_.is_closed() ? service::ServiceState::kDraining : engine_->status().state;
        routes_.refuse(e, fail(StatusCode::kUnavailable, "the engine is " + std::string(name_of(state))));
    };
    const auto version = [this](const ExchangePtr& e) {
        routes_.answer(e, {200, dumped({{"version", options_.version}})});
    };
    constexpr bool kOpen = true;
    return {
        {"GET", "/health", health, kOpen},
        {"GET", "/ready", readiness, kOpen},
        {"GET", "/version", version, kOpen},
        {"GET", "/metrics", [this](const ExchangePtr& e) { routes_.answer(e, metrics_text()); }, kOpen},
        {"GET", "/dashboard", [this](const ExchangePtr& e) { routes_.answer(e, dashboard_page()); }, kOpen},
    };
}

}  // namespace patchbay::serve
