#include "metrics/server.hpp"

#include <arpa/inet.h>
#include <prometheus/exposer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "metrics/catalogue.hpp"

namespace patchbay::metrics {

struct Server::Exposer {
    explicit Exposer(const std::string& address) : server(options(address)) {}

    // A connection holds a thread until its request has come, so a silent one must not hold it for long: some 60 a
    // second make room, while a scraper is given 10 s by default. A request of a page is a few hundred bytes.
    static std::vector<std::string> options(const std::string& address) {
        return {"listening_ports",  address, "num_threads",      "32",   "request_timeout_ms", "500",
                "enable_keep_alive", "no",    "connection_queue", "256",  "listen_backlog",     "1024",
                "max_request_size", "16384"};
    }

    prometheus::Exposer server;
};

namespace {

// Why 127.0.0.1:port cannot be had, which the exposer does not tell: "Address already in use".
std::string why_not(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const bool fails = fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0;
    const std::string reason = fails ? std::strerror(errno) : "is the address in use?";
    if (fd >= 0) close(fd);
    return reason;
}

}  // namespace

Server::Server(uint16_t port, const Metrics& metrics) {
    try {
        exposer_ = std::make_unique<Exposer>("127.0.0.1:" + std::to_string(port));
    } catch (const std::exception&) { // it says what it was constructing
        throw std::runtime_error("cannot serve metrics on port " + std::to_string(port) + ": " + why_not(port));
    }
    exposer_->server.RegisterCollectable(metrics.registry());
}

Server::~Server() = default;

uint16_t Server::port() const { return static_cast<uint16_t>(exposer_->server.GetListeningPorts().at(0)); }

}  // namespace patchbay::metrics
