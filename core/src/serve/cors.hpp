// Cross-origin requests: which pages in browsers may read the server's answers. Used by Connection and its
// exchanges.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "serve/http_message.hpp"

namespace patchbay::serve {

// What the answer to a request says of its Origin. `allowed`: origins such as "https://example.org", or "*" for any.
// Empty: there is none, or it is not allowed.
Headers cors_headers(const std::vector<std::string>& allowed, const HttpRequest&);
// The answer to a browser that asks by OPTIONS, before its request, whether it may send that. None: it is no such
// question.
std::optional<HttpResponse> cors_preflight(const std::vector<std::string>& allowed, const HttpRequest&);

}  // namespace patchbay::serve
