#include "serve/error_reply.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/request.hpp"

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

std::string field_named_in(const std::string& text) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_";
    constexpr std::string_view kFields[] = {
        "prompt", "n", "best_of", "max_tokens", "min_tokens", "stop", "stop_token_ids", "logit_bias", "logprobs",
        "prompt_logprobs", "top_k", "seed", "mirostat", "dry_allowed_length", "dry_range", "dry_breakers", "bad_words",
        "allowed_token_ids", "repetition_detection", "structured_outputs", "use_beam_search", "priority", "cache_salt"};
    for (size_t at = 0; (at = text.find_first_of(kLetters, at)) != std::string::npos;) {
        const size_t end = std::min(text.find_first_not_of(kLetters, at), text.size());
        const std::string word = text.substr(at, end - at);
        const auto is_it = [&](const auto& range) { return word == range.name; };
        const bool is_range = std::ranges::any_of(engine::kSamplingRanges, is_it);
        if (is_range || std::ranges::find(kFields, word) != std::end(kFields)) return word;
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
