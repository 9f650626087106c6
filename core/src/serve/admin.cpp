#include "serve/admin.hpp"

#include <algorithm>

#include "engine/engine_control.hpp"
#include "serve/admin_json.hpp"
#include "serve/admin_orders.hpp"
#include "serve/dashboard.hpp"
#include "serve/reply.hpp"

namespace patchbay::serve {
namespace {

HttpOptions http_options(const AdminAddress& address) {
    HttpOptions out;
    out.host = address.host;
    out.port = address.port;
    out.socket = address.socket;
    out.threads = 1;
    out.max_connections = 64;
    out.max_body_bytes = 64u << 10;
    out.if_lost = [](const HttpRequest& request) {
        return "the server has ended by a fault while it " + work_of(request.path, request.body) +
               ": its log says why, and so does `patchbay status` where it is supervised";
    };
    out.keep_alive_seconds = out.read_seconds = out.write_seconds = 5; // which bound how long stop() waits for a client
    return out;
}

std::vector<std::string> keys_of(const AdminAddress& address) {
    return address.token.empty() ? std::vector<std::string>{} : std::vector<std::string>{address.token};
}

std::string order_text(const char* verb, const std::string& kind, const config::PluginChoice& choice) {
    std::string out = std::string(verb) + " " + kind;
    if (!choice.plugin.empty()) out += " " + choice.plugin;
    for (const auto& [key, value] : choice.settings) out += " " + key + "=" + value;
    return out;
}

unsigned status_of(const std::vector<host::SwapRecord>& together) {
    constexpr unsigned kDone = 200, kAccepted = 202, kConflict = 409;
    if (!std::ranges::all_of(together, &host::SwapRecord::settled)) return kAccepted;
    return together.front().state == host::SwapState::kCommitted ? kDone : kConflict;
}

}  // namespace

Result<std::unique_ptr<Admin>> Admin::start(AdminOptions options, Controlled controlled) {
    PB_TRY(host::Registry registry, options.find_plugins());
    std::unique_ptr<Admin> out(new Admin(std::move(options), std::move(controlled), std::move(registry)));
    const Routes& routes = out->routes_;
    HttpOptions http = http_options(out->options_.address);
    http.takes = [&routes](const HttpRequest& request) { return routes.takes(request); };
    PB_TRY(out->http_, HttpServer::listen(http, [&routes](const auto& exchange) { routes.handle(exchange); }));
    PB_CHECK(out->watch_folders());
    out->http_->run();
    return out;
}

Admin::Admin(AdminOptions options, Controlled controlled, host::Registry registry)
    : options_(std::move(options)), controlled_(std::move(controlled)),
      routes_(keys_of(options_.address), controlled_.metrics,
              "no valid admin token, expected 'Authorization: Bearer TOKEN', with the token of --admin-token-file"),
      swaps_(controlled_.engine, controlled_.journal, options_.ledger, controlled_.replacement,
             options_.requested.swap.probation_steps),
      registry_(std::make_shared<const host::Registry>(std::move(registry))) {
    routes_.add(routes());
}

Admin::~Admin() { stop(); }

AdminAddress Admin::address() const {
    AdminAddress out = options_.address;
    if (out.socket.empty()) out.port = http_->port();
    return out;
}

void Admin::stop() {
    watch_.reset();
    swaps_.stop();
    if (!http_) return;
    http_->stop_listening();
    http_->wait_until_closed();
    http_->stop();
}

std::vector<Route> Admin::routes() {
    const auto by = [this](void (Admin::*f)(const std::shared_ptr<Exchange>&)) {
        return [this, f](const std::shared_ptr<Exchange>& exchange) { (this->*f)(exchange); };
    };
    constexpr bool kOpen = true; // a browser cannot send the token with the page's first request
    return {
        {"GET", "/dashboard", [this](const auto& exchange) { routes_.answer(exchange, dashboard_page()); }, kOpen},
        {"GET", "/metrics", [this](const auto& exchange) { routes_.answer(exchange, controlled_.metrics_text()); }},
        {"GET", "/status", by(&Admin::status)}, {"GET", "/plugins", by(&Admin::plugins)},
        {"POST", "/swap", by(&Admin::swap)},    {"POST", "/set", by(&Admin::set)},
        {"POST", "/reload", by(&Admin::reload)}, {"POST", "/drain", by(&Admin::drain)},
    };
}

std::shared_ptr<const host::Registry> Admin::registry() const {
    const std::lock_guard lock(mutex_);
    return registry_;
}

// Of what is known without the engine's thread, which may be in a long step.
void Admin::status(const std::shared_ptr<Exchange>& exchange) {
    JournalState journal = controlled_.journal.state();
    std::vector<PendingSwap> pending = swaps_.pending(journal.step);
    const StatusInputs inputs{controlled_, options_.requested, controlled_.engine.status(), std::move(journal),
                              std::move(pending), new_builds_.unused(controlled_.journal.state()),
                              options_.ledger ? options_.ledger->culprits() : std::vector<Culprit>{}};
    routes_.answer(exchange, {200, dumped(status_json(inputs))});
}

void Admin::plugins(const std::shared_ptr<Exchange>& exchange) {
    exchange->offload([this, exchange] {
        routes_.answer(exchange, {200, dumped(plugins_json(*registry(), options_.ledger.get()))});
    });
}

void Admin::swap(const std::shared_ptr<Exchange>& exchange) {
    const auto body = parse_body(exchange->request().body);
    if (!body) return routes_.refuse(exchange, body.failure());
    ReadSwaps wanted = read_swaps(*body);
    if (wanted.refusal) return routes_.refuse(exchange, wanted.refusal->failure, wanted.refusal->param);
    SwapOrder order;
    for (const ReadSwap& swap : wanted.swaps) order.parts.push_back({swap.slot, swap.choice});
    order.registry = registry();
    order.done = [this, exchange, swaps = wanted.swaps](const Result<std::vector<host::SwapRecord>>& r) {
        if (!r) return routes_.refuse(exchange, r.failure());
        for (size_t i = 0; i < r->size(); ++i)
            if (r->at(i).state != host::SwapState::kRefused) note("swap", swaps[i]);
        routes_.answer(exchange, {status_of(*r), dumped(swaps_json(*r))});
    };
    const Result<> added = swaps_.add(std::move(order));
    if (!added) routes_.refuse(exchange, added.failure());
}

void Admin::note(const char* verb, const ReadSwap& order) const {
    if (controlled_.on_change) controlled_.on_change(order_text(verb, std::string(name_of(order.slot)), order.choice));
}

// For /status and for the supervisor. The settings of a model are those of its checkpoint. [the engine's thread]
void Admin::keep(engine::SwapSlot which, const host::Settings& settings) const {
    const SlotStatus now = controlled_.journal.set(name_of(which), settings);
    if (options_.ledger && which != engine::SwapSlot::kModel)
        options_.ledger->set(now.identity.kind, {now.identity.name, settings}, now.on_probation);
}

// Waits for the step under way to end.
void Admin::set(const std::shared_ptr<Exchange>& exchange) {
    const auto body = parse_body(exchange->request().body);
    if (!body) return routes_.refuse(exchange, body.failure());
    ReadSwap wanted = read_set(*body);
    if (wanted.refusal) return routes_.refuse(exchange, wanted.refusal->failure, wanted.refusal->param);
    exchange->offload([this, exchange, wanted = std::move(wanted)] {
        Result<> done;
        host::Settings settings;
        const bool called = controlled_.engine.call([&](engine::Engine& engine) {
            done = engine.control().configure(wanted.slot, wanted.choice.settings);
            settings = engine.control().settings(wanted.slot);
            if (done) keep(wanted.slot, settings);
        });
        if (!called) return routes_.refuse(exchange, fail(StatusCode::kUnavailable, "the engine has stopped"));
        if (!done) return routes_.refuse(exchange, done.failure());
        note("set", wanted);
        routes_.answer(exchange, {200, dumped({{"kind", name_of(wanted.slot)}, {"params", settings}})});
    });
}

Result<std::shared_ptr<const host::Registry>> Admin::find_again() {
    PB_TRY(host::Registry found, options_.find_plugins());
    auto registry = std::make_shared<const host::Registry>(std::move(found));
    const std::lock_guard lock(mutex_);
    registry.swap(registry_);
    return registry;
}

void Admin::reload(const std::shared_ptr<Exchange>& exchange) {
    exchange->offload([this, exchange] {
        const auto before = find_again();
        if (!before) return routes_.refuse(exchange, before.failure());
        routes_.answer(exchange, {200, dumped(reload_json(**before, *registry()))});
    });
}

void Admin::drain(const std::shared_ptr<Exchange>& exchange) {
    controlled_.drain();
    const service::ServiceStatus now = controlled_.engine.status();
    routes_.answer(exchange, {202, dumped({{"state", "draining"}, {"unfinished", now.inbox + now.unfinished}})});
}

}  // namespace patchbay::serve
