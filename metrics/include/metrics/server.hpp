// GET /metrics on the loopback interface, for as long as the object lives.
#pragma once
#include <cstdint>
#include <memory>

namespace patchbay::metrics {

class Metrics;

class Server {
  public:
    // Port 0: any free one. Throws std::runtime_error if the port cannot be had.
    Server(uint16_t port, const Metrics&);
    ~Server();
    uint16_t port() const;

  private:
    struct Exposer;
    std::unique_ptr<Exposer> exposer_;
};

}  // namespace patchbay::metrics
