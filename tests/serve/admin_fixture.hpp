// A server with an admin address, and a client of both.
#pragma once
#include <string>
#include <vector>

#include "serve/admin_client.hpp"
#include "serve/server_fixture.hpp"
#include "serve/temporary_folder.hpp"

namespace patchbay::serve::testing {

Result<host::Registry> find_plugins(); // the product's, and those of tests/swap

struct Said {
    unsigned status = 0;
    Json body;
};

class Controlled { // a server of the demo model with an admin address in a folder of its own
  public:
    explicit Controlled(config::EngineConfig = Running::demo_model(), AdminAddress = {},
                        std::function<Result<host::Registry>()> plugins = find_plugins);

    AdminAddress address() const { return server.server->admin()->address(); }
    Said ask(const std::string& method, const std::string& path, const std::string& body = {}) const;
    Json status() const { return ask("GET", "/status").body; }
    Said swap(const Json& body) const { return ask("POST", "/swap", body.dump()); }

    const TemporaryFolder folder;
    const Running server;
};

Json slot(const Json& status, const std::string& kind);
Json both(const Json& scheduler, const Json& sampler); // a body of POST /swap
Json greedy(const std::string& prompt, int max_tokens);
std::vector<int> streamed_ids(uint16_t port, Json body);

}  // namespace patchbay::serve::testing
