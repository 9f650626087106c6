#include "serve/operator_routes.hpp"

#include <memory>

#include "serve/dashboard.hpp"
#include "serve/error_reply.hpp"
#include "serve/reply.hpp"

namespace patchbay::serve {

std::vector<Route> operator_routes(const OperatorContext& context) {
    using ExchangePtr = std::shared_ptr<Exchange>;
    const Routes& routes = context.routes;
    const auto health = [&engine = context.engine, &routes](const ExchangePtr& e) {
        const service::ServiceStatus now = engine.status();
        if (now.state == service::ServiceState::kFailed)
            return routes.refuse(e, fail(StatusCode::kUnavailable, "the engine has failed: " + now.reason));
        routes.answer(e, {200, "", ""});
    };
    const auto readiness = [&engine = context.engine, &admission = context.admission, &routes](const ExchangePtr& e) {
        const auto state = admission.is_closed() ? service::ServiceState::kDraining : engine.status().state;
        if (state == service::ServiceState::kRunning) return routes.answer(e, {200, "", ""});
        routes.refuse(e, fail(StatusCode::kUnavailable, "the engine is " + std::string(name_of(state))));
    };
    const auto version = [&routes, version = context.version](const ExchangePtr& e) {
        routes.answer(e, {200, dumped({{"version", version}})});
    };
    const auto metrics = [&routes, metrics = context.metrics](const ExchangePtr& e) { routes.answer(e, metrics()); };
    const auto dashboard = [&routes](const ExchangePtr& e) { routes.answer(e, dashboard_page()); };
    constexpr bool kOpen = true;
    return {
        {"GET", "/health", health, kOpen},         {"GET", "/ready", readiness, kOpen},
        {"GET", "/version", version, kOpen},       {"GET", "/metrics", metrics, kOpen},
        {"GET", "/dashboard", dashboard, kOpen},
    };
}

HttpResponse metrics_text(ServeMetrics& metrics, const HttpServer& http, size_t asking) {
    metrics.scrape(http.connections(), http.exchanges() - asking);
    return {200, metrics.text(), kMetricsType};
}

}  // namespace patchbay::serve
