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
#include "base/refusals.hpp"
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
        return invalid(where + ": permission denied: only the user who runs the engine, and root, may control it");
    if (error == asio::error::operation_aborted) return fail(StatusCode::kCancelled, where + ": not waited for");
    return fail("cannot ask " + where + ": " + printable(error.message()));
}

// One asynchronous operation at a time, waited for, so that it can be stopped from another thread.
class Waiting {
  public:
    explicit Waiting(std::stop_token stop) : stop_(std::move(stop)), on_stop_(stop_, Stop{io}) {}

    asio::io_context io;

    // begin(handler) begins the operation, which calls handler(error, …) at its end. operation_aborted: it was stopped.
    template <class Begin>
    Error until_done(Begin&& begin) {
        Error out = asio::error::operation_aborted;
        begin([&out](const Error& error, auto&&...) { out = error; });
        io.restart();
        if (!stop_.stop_requested()) io.run();
        return out;
    }

  private:
    struct Stop {
        asio::io_context& io;
        void operator()() const { io.stop(); }
    };
    const std::stop_token stop_;
    const std::stop_callback<Stop> on_stop_;
};

Error connect(Waiting& waiting, const AdminAddress& address, Socket& out) {
    if (!address.socket.empty())
        return waiting.until_done([&](auto handler) {
            out.async_connect(asio::local::stream_protocol::endpoint(address.socket), std::move(handler));
        });
    Error error;
    asio::ip::tcp::resolver resolver(waiting.io);
    const auto found = resolver.resolve(address.host, std::to_string(address.port), error);
    if (error) return error;
    asio::ip::tcp::socket socket(waiting.io);
    error = waiting.until_done([&](auto handler) { asio::async_connect(socket, found, std::move(handler)); });
    if (!error) out = Socket(std::move(socket));
    return error;
}

}  // namespace

Result<HttpResponse> ask_admin(const AdminAddress& address, const std::string& method, const std::string& path,
                               const std::string& body, std::stop_token stop) {
    if (address.socket.size() >= kMaxSocketPath)
        return fail(StatusCode::kInvalid, "a Unix socket's path has at most " + std::to_string(kMaxSocketPath - 1) +
                                              " bytes, got " + std::to_string(address.socket.size()));
    constexpr uint64_t kMaxAnswer = 64u << 20;
    Waiting waiting(std::move(stop));
    boost::beast::flat_buffer buffer;
    http::response_parser<http::string_body> parser;
    parser.body_limit(kMaxAnswer);
    Socket socket(waiting.io);
    if (const Error error = connect(waiting, address, socket)) return cannot_ask(address, error);
    http::request<http::string_body> request(http::string_to_verb(method), path, 11);
    request.set(http::field::host, address.socket.empty() ? address.host : "localhost");
    request.set(http::field::content_type, "application/json");
    request.set(http::field::connection, "close");
    if (!address.token.empty()) request.set(http::field::authorization, "Bearer " + address.token);
    request.body() = body;
    request.prepare_payload();
    Error error = waiting.until_done([&](auto handler) { http::async_write(socket, request, std::move(handler)); });
    if (error) return cannot_ask(address, error);
    error = waiting.until_done([&](auto handler) { http::async_read(socket, buffer, parser, std::move(handler)); });
    if (error == http::error::end_of_stream || error == http::error::partial_message)
        return fail(StatusCode::kUnavailable, "the engine on " + address.text() + " ended before it answered");
    if (error) return cannot_ask(address, error);
    HttpResponse out;
    out.status = parser.get().result_int();
    out.body = std::move(parser.get().body());
    return out;
}

}  // namespace patchbay::serve
