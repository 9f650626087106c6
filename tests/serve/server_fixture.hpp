// Servers of the demo model on a free port, and what its engine gives for the same prompts without them.
#pragma once
#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "serve/http_client.hpp"
#include "serve/server.hpp"
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::serve::testing {

struct Running { // a server and what it needs to live
    explicit Running(ServerOptions = {}, config::EngineConfig = demo_model(),
                     const host::Registry& = engine::testing::registry());
    static config::EngineConfig demo_model();

    uint16_t port() const { return server->port(); }
    Answer post(const std::string& path, const Json& body, const std::string& headers = {}) const {
        return testing::post(port(), path, body.dump(), headers);
    }
    Json complete(Json body) const; // POST /v1/completions, which succeeds
    // Waits until the engine has no request any more; the pages that are in use then.
    uint32_t pages_in_use_when_idle() const;
    void wait_until_finished(uint64_t requests) const; // so many since it was started
    uint64_t finished() const;                         // requests
    void wait_until_closed() const;                    // all connections

    RealClock clock;
    metrics::Metrics metrics;
    std::unique_ptr<Server> server;
};

Running& shared(); // for tests that leave a server as it was

// Waits until it holds. Throws after a minute, with what does not come.
void wait_until(const std::string& what, const std::function<bool()>& holds);

// Keeps the engine's thread from taking a step as long as it lives.
class HeldEngine {
  public:
    explicit HeldEngine(const Running&);
    ~HeldEngine();
    HeldEngine(const HeldEngine&) = delete;
    HeldEngine& operator=(const HeldEngine&) = delete;

  private:
    std::atomic<bool> held_ = false, released_ = false;
    std::thread thread_;
};

inline constexpr size_t kLongPrompts = 64;
Json long_stream(); // of so many prompts: it takes seconds, though each step is short

// A chat template like many.
inline constexpr const char* kTemplate =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% "
    "endif %}";

std::string expected_text(const std::string& prompt, uint32_t max_tokens); // greedy, by a plain loop
std::vector<int> rest_of_ids(HttpClient&); // of a stream of completions with return_token_ids

}  // namespace patchbay::serve::testing
