#include "serve/error_reply.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/request/parameters.hpp"

namespace patchbay::serve {
namespace {

const char* type_of(unsigned status) {
    switch (status) {
        case 401: return "authentication_error";
        case 404: return "not_found_error";
        case 429: return "rate_limit_error";
        case 503: return "service_unavailable_error";
        default: return status < 500 ? "invalid_request_error" : "server_error";
    }
}

}  // namespace

unsigned http_status(StatusCode code) {
    switch (code) {
        case StatusCode::kInvalid:
        case StatusCode::kUnsupported: return 400;
        case StatusCode::kNotFound: return 404;
        case StatusCode::kExhausted: return 429;
        case StatusCode::kCancelled: return 499;
        case StatusCode::kUnavailable: return 503;
        case StatusCode::kFailed:
        case StatusCode::kInternal: return 500;
    }
    return 500;
}

std::string field_named_in(const std::string& text) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_";
    const auto is_field = [](const std::string& word) {
        constexpr std::string_view kOthers[] = {"prompt", "use_beam_search", "priority", "cache_salt", "top_logprobs"};
        return std::ranges::find(kOthers, word) != std::end(kOthers) ||
               std::ranges::any_of(engine::rows_of<engine::SamplingParams>(), [&](const auto& row) {
                   return row.info.json != engine::InJson::kNo && row.info.name == word;
               });
    };
    for (size_t at = 0; (at = text.find_first_of(kLetters, at)) != std::string::npos;) {
        const size_t end = std::min(text.find_first_not_of(kLetters, at), text.size());
        const std::string word = text.substr(at, end - at);
        if (is_field(word)) return word;
        at = end;
    }
    return {};
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
