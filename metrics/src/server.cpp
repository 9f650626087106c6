#include "metrics/server.hpp"

#include <prometheus/exposer.h>

#include <exception>
#include <stdexcept>
#include <string>

#include "metrics/catalogue.hpp"

namespace patchbay::metrics {

struct Server::Exposer {
    explicit Exposer(const std::string& address) : server(address, 1) {}
    prometheus::Exposer server;
};

Server::Server(uint16_t port, const Metrics& metrics) {
    try {
        exposer_ = std::make_unique<Exposer>("127.0.0.1:" + std::to_string(port));
    } catch (const std::exception& e) {
        throw std::runtime_error("cannot serve metrics on 127.0.0.1:" + std::to_string(port) +
                                 ": does another program use the port? (" + e.what() + ")");
    }
    exposer_->server.RegisterCollectable(metrics.registry());
}

Server::~Server() = default;

uint16_t Server::port() const { return static_cast<uint16_t>(exposer_->server.GetListeningPorts().at(0)); }

}  // namespace patchbay::metrics
