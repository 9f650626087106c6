#include "serve/request_reader.hpp"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <cctype>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/printable.hpp"

namespace patchbay::serve {
namespace {

namespace http = boost::beast::http;

constexpr size_t kMaxPipelinedBytes = 256u << 10; // read ahead while a request is answered

using Message = http::request<http::string_body>;

ParsedRequest without_body(const Message& message) {
    ParsedRequest out;
    HttpRequest& request = out.request;
    request.method = std::string(message.method_string());
    std::string_view target(message.target().data(), message.target().size());
    for (const std::string_view scheme : {"http://", "https://"}) // as proxies are asked
        if (target.starts_with(scheme)) {
            const size_t path = target.find('/', scheme.size());
            target = path == target.npos ? "/" : target.substr(path);
        }
    request.path = std::string(target.substr(0, target.find('?')));
    for (const auto& field : message) {
        std::string name(field.name_string());
        std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
        request.headers.emplace_back(std::move(name), std::string(field.value()));
    }
    out.http_1_1 = message.version() >= 11;
    out.keep_alive = message.keep_alive();
    return out;
}

ParsedRequest parsed_request(Message message) {
    ParsedRequest out = without_body(message);
    out.request.body = std::move(message.body());
    return out;
}

}  // namespace

boost::asio::mutable_buffer RequestReader::prepare() { return boost::asio::buffer(incoming_); }

void RequestReader::commit(size_t bytes) {
    if (discarding_) return;
    buffer_.commit(boost::asio::buffer_copy(buffer_.prepare(bytes), boost::asio::buffer(incoming_, bytes)));
}

bool RequestReader::is_full() const { return buffer_.size() >= kMaxPipelinedBytes; }

void RequestReader::discard() {
    discarding_ = true;
    parser_.reset();
    buffer_.consume(buffer_.size());
}

// Where a body ends is known only by a length or by chunks: of another coding the parser sees no body, and would read
// its bytes as the next request.
std::optional<RequestReader::Rejection> RequestReader::check_framing() const {
    const auto [first, last] = parser_->get().equal_range(http::field::transfer_encoding);
    if (first == last) return std::nullopt;
    if (parser_->get().version() < 11)
        return Rejection{400, "Transfer-Encoding in a request of HTTP/1.0, expected Content-Length"};
    if (std::next(first) == last && boost::beast::iequals(first->value(), "chunked")) return std::nullopt;
    std::string given;
    for (auto at = first; at != last; ++at) given += (at == first ? "" : ", ") + std::string(at->value());
    return Rejection{501, "Transfer-Encoding: " + printable(given, 60) + " is not supported, expected chunked"};
}

RequestReader::Outcome RequestReader::parse() {
    Outcome out;
    const auto reject = [&](unsigned status, std::string text) {
        out.rejection = Rejection{status, std::move(text)};
        const bool of_length = status == 413; // by the headers, which the parser does not call done then
        if (of_length || parser_->is_header_done()) out.rejection->head = without_body(parser_->get()).request;
        discard();
    };
    while (buffer_.size() > 0) {
        if (!parser_) {
            parser_.emplace();
            parser_->eager(true);
            parser_->header_limit(max_header_bytes_);
            parser_->body_limit(max_body_bytes_);
            header_checked_ = false;
        }
        boost::system::error_code error;
        const size_t used = parser_->put(buffer_.data(), error);
        buffer_.consume(used);
        const bool needs_more = error == http::error::need_more;
        const bool has_header = parser_->is_header_done();
        const bool first = has_header && !std::exchange(header_checked_, has_header);
        if (const auto framing = first ? check_framing() : std::nullopt) {
            reject(framing->status, framing->text);
        } else if (error == http::error::body_limit) {
            reject(413, "the body has more than " + std::to_string(max_body_bytes_) + " bytes");
        } else if (error == http::error::header_limit) {
            reject(431, "the headers have more than " + std::to_string(max_header_bytes_) + " bytes");
        } else if (error && !needs_more) {
            reject(400, "this is not an HTTP request: " + printable(error.message()));
        } else if (parser_->is_done()) {
            out.request = parsed_request(parser_->release());
            parser_.reset();
            break;
        } else {
            if (first && takes_) {
                ParsedRequest head = without_body(parser_->get());
                if (!takes_(head.request)) {
                    head.keep_alive = false;
                    discard();
                    out.request = std::move(head);
                    break;
                }
            }
            if (first)
                out.expects_continue = boost::beast::iequals(parser_->get()[http::field::expect], "100-continue");
            // Of a chunk: its size and extensions, or the trailers after the last one, which no limit above sees.
            if (needs_more && has_header && buffer_.size() > max_header_bytes_)
                reject(431, "a chunk's head, or the trailers, have more than " + std::to_string(max_header_bytes_) +
                                " bytes");
            if (needs_more || used == 0) break;
        }
    }
    return out;
}

}  // namespace patchbay::serve
