// The routes of a server's operators: health, readiness, version, metrics, dashboard. They need no key.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "serve/admission.hpp"
#include "serve/routes.hpp"
#include "service/live_engine.hpp"

namespace patchbay::serve {

struct OperatorContext { // all of it outlives the requests
    const service::LiveEngine& engine;
    const Admission& admission;
    const Routes& routes; // that the answers go by
    std::function<HttpResponse()> metrics;
    std::string version;
};

std::vector<Route> operator_routes(const OperatorContext&);

// The answer to /metrics, with the connections and exchanges that there are now. asking: how many of the exchanges are
// the one that it answers: 1, or 0 where that is another server's.
HttpResponse metrics_text(ServeMetrics&, const HttpServer&, size_t asking);

}  // namespace patchbay::serve
