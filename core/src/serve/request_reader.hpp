// Requests from the bytes of one connection. Internal: includes Boost.Beast, so that few files do. Used by Connection.
#pragma once
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "serve/http_message.hpp"

namespace patchbay::serve {

struct ParsedRequest {
    HttpRequest request;
    bool http_1_1 = true; // or a later version
    bool keep_alive = true; // the client sends more requests
};

class RequestReader { // one thread at a time
  public:
    struct Rejection {
        unsigned status;
        std::string text;
        HttpRequest head{}; // the request without its body; without headers where they are not whole
    };
    struct Outcome { // by one call; none of them: more bytes are needed
        std::optional<ParsedRequest> request;
        std::optional<Rejection> rejection; // no request that can be answered; everything after it is discarded
        bool expects_continue = false;      // the client waits for "100 Continue" before it sends its body
    };

    // takes: asked with a request that has all but its body. If it takes none, that is the outcome, and the last one.
    RequestReader(uint64_t max_body_bytes, uint32_t max_header_bytes,
                  std::function<bool(const HttpRequest&)> takes = {})
        : max_body_bytes_(max_body_bytes), max_header_bytes_(max_header_bytes), takes_(std::move(takes)) {}

    boost::asio::mutable_buffer prepare(); // where to put bytes, until commit(); others may be parsed meanwhile
    void commit(size_t bytes);             // so many were put there
    Outcome parse();                       // one request at most
    void discard();                        // what came and what comes

    size_t buffered() const { return buffer_.size(); } // bytes that were not parsed
    bool is_full() const;    // no more is to be read while a request is answered
    bool is_partial() const { return parser_.has_value(); } // a request has begun
    bool is_discarding() const { return discarding_; }

  private:
    using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
    std::optional<Rejection> check_framing() const; // of the headers, which are there

    const uint64_t max_body_bytes_;
    const uint32_t max_header_bytes_;
    const std::function<bool(const HttpRequest&)> takes_; // empty: all
    std::array<char, 16u << 10> incoming_; // the bytes of the next commit()
    boost::beast::flat_buffer buffer_;     // those that came and were not parsed
    std::optional<Parser> parser_; // of the request that has begun
    bool header_checked_ = false;  // in that one
    bool discarding_ = false;
};

}  // namespace patchbay::serve
