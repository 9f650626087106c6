#include "serve/http_answer.hpp"

#include <cstdio>
#include <ostream> // which Boost's string_view uses without including it

#include <boost/beast/http/status.hpp>

namespace patchbay::serve {

std::string answer_head(const HttpResponse& response, Ending ending) {
    namespace http = boost::beast::http;
    std::string out = "HTTP/1.1 " + std::to_string(response.status) + " ";
    const auto reason = http::obsolete_reason(static_cast<http::status>(response.status));
    out.append(reason.data(), reason.size());
    if (!response.content_type.empty()) out += "\r\nContent-Type: " + response.content_type;
    for (const auto& [name, value] : response.headers) out += "\r\n" + name + ": " + value;
    if (ending == Ending::kClose) out += "\r\nConnection: close";
    if (ending == Ending::kSaidKeepAlive) out += "\r\nConnection: keep-alive";
    return out;
}

std::string whole_answer(const HttpResponse& response, Ending ending, bool head_only) {
    std::string out = answer_head(response, ending);
    constexpr unsigned kNoContent = 204; // which has no length
    if (response.status != kNoContent) out += "\r\nContent-Length: " + std::to_string(response.body.size());
    out += "\r\n\r\n";
    if (!head_only) out += response.body;
    return out;
}

std::string chunk_of(std::string_view bytes) {
    char size[24];
    const int digits = std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    std::string out(size, static_cast<size_t>(digits));
    out += bytes;
    out += "\r\n";
    return out;
}

}  // namespace patchbay::serve
