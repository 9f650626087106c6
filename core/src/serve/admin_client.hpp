// One question to the admin address of a running engine, and its answer. Used by commands and tests.
#pragma once
#include <stop_token>
#include <string>

#include "serve/admin_address.hpp"
#include "serve/http_message.hpp"

namespace patchbay::serve {

// Waits for the answer, however long it takes, or until it is stopped (cancelled). The failure: nothing listens there
// (unavailable), it may not be asked, or what answers is no such server. Refusals are answers.
Result<HttpResponse> ask_admin(const AdminAddress&, const std::string& method, const std::string& path,
                               const std::string& body = {}, std::stop_token = {});

}  // namespace patchbay::serve
