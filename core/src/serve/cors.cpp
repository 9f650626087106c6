#include "serve/cors.hpp"

#include <algorithm>

namespace patchbay::serve {

Headers cors_headers(const std::vector<std::string>& allowed, const HttpRequest& request) {
    const std::string_view origin = request.header("origin");
    const auto is = [&](const std::string& one) { return one == "*" || one == origin; };
    if (origin.empty() || std::ranges::none_of(allowed, is)) return {};
    return {{"Access-Control-Allow-Origin", std::string(origin)}, {"Vary", "Origin"}};
}

std::optional<HttpResponse> cors_preflight(const std::vector<std::string>& allowed, const HttpRequest& request) {
    if (request.method != "OPTIONS" || request.header("access-control-request-method").empty()) return std::nullopt;
    if (cors_headers(allowed, request).empty()) return std::nullopt;
    HttpResponse out{204, "", ""};
    out.headers = {{"Access-Control-Allow-Methods", "GET, POST"}, {"Access-Control-Max-Age", "600"}};
    const std::string_view headers = request.header("access-control-request-headers");
    if (!headers.empty()) out.headers.emplace_back("Access-Control-Allow-Headers", headers);
    return out;
}

}  // namespace patchbay::serve
