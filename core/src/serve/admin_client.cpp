#include "serve/admin_client.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include "base/printable.hpp"
#include "serve/socket_file.hpp"

namespace patchbay::serve {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Socket = asio::generic::stream_protocol::socket;
using Error = boost::system::error_code;

Failure cannot_ask(const AdminAddress& address, const Error& error) {
    const std::string where = address.text();
    if (error == asio::error::connection_refused || error == boost::system::errc::no_such_file_or_directory)
        return fail(StatusCode::kUnavailable, "no engine listens on " + where);
    if (error == asio::error::access_denied)
        return fail(where + ": permission denied: only the user who runs the engine, and root, may control it");
    return fail("cannot ask " + where + ": " + printable(error.message()));
}

Error connect(asio::io_context& io, const AdminAddress& address, Socket& out) {
    Error error;
    if (!address.socket.empty()) {
        out.connect(asio::local::stream_protocol::endpoint(address.socket), error);
        return error;
    }
    asio::ip::tcp::resolver resolver(io);
    const auto found = resolver.resolve(address.host, std::to_string(address.port), error);
    if (error) return error;
    asio::ip::tcp::socket socket(io);
    asio::connect(socket, found, error);
    if (!error) out = Socket(std::move(socket));
    return error;
}

}  // namespace

Result<HttpResponse> ask_admin(const AdminAddress& address, const std::string& method, const std::string& path,
                               const std::string& body) {
    if (address.socket.size() >= kMaxSocketPath)
        return fail(StatusCode::kInvalid, "a Unix socket's path has at most " + std::to_string(kMaxSocketPath - 1) +
                                              " bytes, got " + std::to_string(address.socket.size()));
    asio::io_context io;
    Socket socket(io);
    if (const Error error = connect(io, address, socket)) return cannot_ask(address, error);
    http::request<http::string_body> request(http::string_to_verb(method), path, 11);
    request.set(http::field::host, address.socket.empty() ? address.host : "localhost");
    request.set(http::field::content_type, "application/json");
    request.set(http::field::connection, "close");
    if (!address.token.empty()) request.set(http::field::authorization, "Bearer " + address.token);
    request.body() = body;
    request.prepare_payload();
    Error error;
    http::write(socket, request, error);
    if (error) return cannot_ask(address, error);
    constexpr uint64_t kMaxAnswer = 64u << 20;
    boost::beast::flat_buffer buffer;
    http::response_parser<http::string_body> parser;
    parser.body_limit(kMaxAnswer);
    http::read(socket, buffer, parser, error);
    if (error == http::error::end_of_stream || error == http::error::partial_message)
        return fail(StatusCode::kUnavailable, "the engine on " + address.text() + " ended before it answered");
    if (error) return cannot_ask(address, error);
    HttpResponse out;
    out.status = parser.get().result_int();
    out.body = std::move(parser.get().body());
    return out;
}

}  // namespace patchbay::serve
