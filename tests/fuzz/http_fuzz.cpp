// Any bytes as what a client sends to the HTTP server, in parts that bytes of 0xff end: requests that keep the limits
// reach the handler, and each connection ends when its client does.
#include <sys/socket.h>
#include <spdlog/spdlog.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "serve/http_connection.hpp"

namespace {

using namespace patchbay::serve;

constexpr uint64_t kMaxBody = 4096;
constexpr uint32_t kMaxHeader = 2048;
constexpr size_t kMaxBytes = 1 << 14; // bytes that a socket takes at once

void answer(const std::shared_ptr<Exchange>& exchange) {
    const HttpRequest& request = exchange->request();
    if (request.body.size() > kMaxBody || request.path.size() > kMaxHeader) abort();
    for (const auto& [name, value] : request.headers)
        if (name.empty() || name.size() + value.size() > kMaxHeader) abort();
    if (request.path != "/stream") return exchange->respond({200, request.body});
    exchange->begin_stream({});
    exchange->write(request.body);
    exchange->end_stream();
}

std::shared_ptr<ConnectionSet> connections() {
    HttpOptions options;
    options.max_body_bytes = kMaxBody;
    options.max_header_bytes = kMaxHeader;
    static const auto set = [&] {
        spdlog::set_level(spdlog::level::off);
        return std::make_shared<ConnectionSet>(options, answer);
    }();
    return set;
}

// Reads away what was answered, so that the server can go on.
void drain(int fd) {
    char taken[4096];
    while (recv(fd, taken, sizeof taken, MSG_DONTWAIT) > 0) {}
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size > kMaxBytes) return 0;
    const auto set = connections();
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
    {
        asio::io_context io;
        Connection::Socket socket(asio::make_strand(io), Connection::Protocol(AF_UNIX, 0), ends[0]);
        std::make_shared<Connection>(std::move(socket), set)->start();
        std::string_view rest(reinterpret_cast<const char*>(data), size);
        while (!rest.empty()) {
            const size_t end = std::min(rest.find('\xff'), rest.size());
            const std::string_view part = rest.substr(0, end);
            if (send(ends[1], part.data(), part.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break; // it has closed
            io.poll();
            io.restart();
            drain(ends[1]);
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        shutdown(ends[1], SHUT_WR);
        for (int i = 0; i < 64 && io.poll() > 0; ++i) {
            io.restart();
            drain(ends[1]);
        }
        close(ends[1]);
        io.restart();
        io.run(); // until the connection has closed
    }
    if (!set->open.empty() || set->exchanges != 0) abort();
    return 0;
}
