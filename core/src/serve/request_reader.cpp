#include "serve/request_reader.hpp"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <cctype>
#include <string_view>
#include <utility>

#include "base/printable.hpp"

namespace patchbay::serve {
namespace {

namespace http = boost::beast::http;

constexpr size_t kMaxPipelinedBytes = 256u << 10; // read ahead while a request is answered

ParsedRequest parsed_request(http::request<http::string_body> message) {
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
    request.body = std::move(message.body());
    out.http_1_1 = message.version() >= 11;
    out.keep_alive = message.keep_alive();
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

RequestReader::Outcome RequestReader::parse() {
    Outcome out;
    const auto reject = [&](unsigned status, std::string text) {
        out.rejection = Rejection{status, std::move(text)};
        discard();
    };
    while (buffer_.size() > 0) {
        if (!parser_) {
            parser_.emplace();
            parser_->eager(true);
            parser_->header_limit(max_header_bytes_);
            parser_->body_limit(max_body_bytes_);
            continue_found_ = false;
        }
        boost::system::error_code error;
        const size_t used = parser_->put(buffer_.data(), error);
        buffer_.consume(used);
        const bool needs_more = error == http::error::need_more;
        if (error == http::error::body_limit) {
            reject(413, "the body has more than " + std::to_string(max_body_bytes_) + " bytes");
        } else if (error == http::error::header_limit) {
            reject(431, "the headers have more than " + std::to_string(max_header_bytes_) + " bytes");
        } else if (error && !needs_more) {
            reject(400, "this is no HTTP request: " + printable(error.message()));
        } else if (parser_->is_done()) {
            out.request = parsed_request(parser_->release());
            parser_.reset();
            break;
        } else {
            const bool expects = parser_->is_header_done() &&
                                 boost::beast::iequals(parser_->get()[http::field::expect], "100-continue");
            out.expects_continue = out.expects_continue || (expects && !continue_found_);
            continue_found_ = continue_found_ || expects;
            // Of a chunk: its size and extensions, or the trailers after the last one, which no limit above sees.
            if (needs_more && parser_->is_header_done() && buffer_.size() > max_header_bytes_)
                reject(431, "a chunk's head, or the trailers, have more than " + std::to_string(max_header_bytes_) +
                                " bytes");
            if (needs_more || used == 0) break;
        }
    }
    return out;
}

}  // namespace patchbay::serve
