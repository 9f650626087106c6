#include "serve/server.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "base/clock.hpp"
#include "base/crash_report.hpp"
#include "engine/engine_control.hpp"
#include "serve/client_routes.hpp"
#include "serve/lost_answers.hpp"
#include "serve/operator_routes.hpp"

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
            if (came_++ > 0) return server.engine_->stop(); // wait() returns; the rest stops then
            server.drain(); // nothing where it does so already
            wait(server);
        });
    }
    boost::asio::io_context io_;
    boost::asio::signal_set set_;
    uint32_t came_ = 0;
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
                          [this] { drain(); }, [this] { return metrics_text(metrics_, *http_, 0); }, {},
                          replacement_.get()});
    if (admin) admin_ = *std::move(admin);
    else if (options_.admin->required) return admin.failure();
    else spdlog::warn("cannot open the admin address: {}", admin.error());
    return {};
}

Server::Server(const ServerOptions& options, std::unique_ptr<engine::Engine> engine, ServedModel model,
               metrics::Metrics& metrics)
    : options_(options), gate_({std::move(model), engine->facts()}), metrics_(metrics),
      routes_(options.api_keys, metrics_),
      admission_(options.max_requests, options.key_limits, [] { return RealClock().now_ns(); }),
      observers_({options.version, options.vllm_metrics, options.ledger, engine->control().configuration()}, metrics,
                 engine->facts(), gate_.serving()->model.names.front()) {
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
    drainer_.emplace(admission_, gate_, *engine_);
    routes_.add(operator_routes(
        {*engine_, admission_, routes_, [this] { return metrics_text(metrics_, *http_, 1); }, options.version}));
    routes_.add(model_routes(gate_, {admission_, routes_, metrics_}));
    routes_.add(text_routes({*engine_, gate_, admission_, routes_, metrics_, options.prefix_cache_per_key}));
}

Server::~Server() { stop(); }

std::optional<std::string> Server::failure() const {
    const service::ServiceStatus status = engine_->status();
    if (status.state != service::ServiceState::kFailed) return std::nullopt;
    return status.reason;
}

void Server::drain() {
    if (options_.ledger) options_.ledger->draining();
    drainer_->begin(*http_);
}
void Server::wait() { engine_->wait(); }
void Server::stop_on_signals() { signals_ = std::make_unique<Signals>(*this); }

void Server::stop() {
    signals_.reset();
    if (engine_) engine_->stop(); // no stream calls back after this
    if (admin_) admin_->stop();
    if (http_) http_->stop();
    gate_.end();
    drainer_->join();
}

}  // namespace patchbay::serve
