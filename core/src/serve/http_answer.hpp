// Answers as the bytes of HTTP/1.1 that are sent. Used by Connection, its exchanges and the server.
#pragma once
#include <string>
#include <string_view>

#include "serve/http_message.hpp"

namespace patchbay::serve {

enum class Ending { kClose, kKeepAlive, kSaidKeepAlive }; // the last: HTTP/1.0 closes unless that is said

inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// Status line and headers; more of them may follow, and then an empty line.
std::string answer_head(const HttpResponse&, Ending);
// With its length. head_only: without the body, as HEAD is answered.
std::string whole_answer(const HttpResponse&, Ending, bool head_only = false);
std::string chunk_of(std::string_view bytes); // at least one byte: a chunk of none is the last

}  // namespace patchbay::serve
