// Failures as HTTP answers, in the shape of OpenAI's API. Used by everything that refuses a request.
#pragma once
#include <string>

#include "base/result.hpp"
#include "serve/http_message.hpp"

namespace patchbay::serve {

unsigned http_status(StatusCode);
// param: the field of the request that is at fault; empty: none, or not one.
std::string error_json(const Failure&, const std::string& param = {});
HttpResponse error_reply(const Failure&, const std::string& param = {});

}  // namespace patchbay::serve
