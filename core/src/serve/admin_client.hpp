// One question to the admin address of a running engine, and its answer. Used by commands and tests.
#pragma once
#include <string>

#include "serve/admin_address.hpp"
#include "serve/http_message.hpp"

namespace patchbay::serve {

// Waits for the answer, however long it takes. The failure: nothing listens there (unavailable), it may not be asked,
// or what answers is no such server. Refusals are answers.
Result<HttpResponse> ask_admin(const AdminAddress&, const std::string& method, const std::string& path,
                               const std::string& body = {});

}  // namespace patchbay::serve
