// Failures as HTTP answers, in the shape of OpenAI's API. Used by everything that refuses a request.
#pragma once
#include <string>

#include "base/result.hpp"
#include "serve/http_message.hpp"

namespace patchbay::serve {

unsigned http_status(StatusCode);
// The field of a request to generate that a refusal of the engine's is about: the first that its text names; empty:
// none.
std::string field_named_in(const std::string& text);
// param: the field of the request that is at fault; empty: none, or not one.
std::string error_json(const Failure&, const std::string& param = {});
HttpResponse error_reply(const Failure&, const std::string& param = {});

}  // namespace patchbay::serve
