// HTTP as the routes see it: plain data, no sockets. Used by the HTTP server and the routes.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace patchbay::serve {

using Headers = std::vector<std::pair<std::string, std::string>>;

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8"; // of Prometheus

struct HttpRequest {
    std::string method;  // "GET"
    std::string path;    // without the query
    Headers headers;     // names in lower case
    std::string body;

    std::string_view header(std::string_view lower_case_name) const { // empty: there is none
        for (const auto& [name, value] : headers)
            if (name == lower_case_name) return value;
        return {};
    }
};

struct HttpResponse {
    unsigned status = 200;
    std::string body;
    std::string content_type = "application/json";
    Headers headers{}; // more of them
};

}  // namespace patchbay::serve
