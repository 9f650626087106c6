#include "serve/error_reply.hpp"

#include <nlohmann/json.hpp>

namespace patchbay::serve {
namespace {

const char* type_of(unsigned status) {
    switch (status) {
        case 401:
            return "authentication_error";
        case 404:
            return "not_found_error";
        case 429:
            return "rate_limit_error";
        case 503:
            return "service_unavailable_error";
        default:
            return status < 500 ? "invalid_request_error" : "server_error";
    }
}

}  // namespace

unsigned http_status(StatusCode code) {
    switch (code) {
        case StatusCode::kInvalid:
        case StatusCode::kUnsupported:
            return 400;
        case StatusCode::kNotFound:
            return 404;
        case StatusCode::kExhausted:
            return 429;
        case StatusCode::kCancelled:
            return 499;
        case StatusCode::kUnavailable:
            return 503;
        case StatusCode::kFailed:
        case StatusCode::kInternal:
            return 500;
    }
    return 500;
}

std::string error_json(const Failure& failure, const std::string& param) {
    using json = nlohmann::ordered_json;
    const json error{{"message", failure.text},
                     {"type", type_of(http_status(failure.code))},
                     {"param", param.empty() ? json() : json(param)},
                     {"code", name_of(failure.code)}};
    return json{{"error", error}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

HttpResponse error_reply(const Failure& failure, const std::string& param) {
    HttpResponse out{http_status(failure.code), error_json(failure, param)};
    if (out.status == 429 || out.status == 503) out.headers.emplace_back("Retry-After", "1");
    return out;
}

}  // namespace patchbay::serve
