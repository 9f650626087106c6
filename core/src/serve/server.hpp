// The server: OpenAI's API and what operators ask, over an engine on a thread of its own. Used by `patchbay serve`.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/admin.hpp"
#include "serve/admission.hpp"
#include "serve/drainer.hpp"
#include "serve/engine_observers.hpp"
#include "serve/model_gate.hpp"
#include "serve/model_replacement.hpp"
#include "serve/routes.hpp"
#include "serve/serve_metrics.hpp"
#include "service/engine_thread.hpp"

namespace patchbay::serve {

struct ServerOptions {
    HttpOptions http;
    std::vector<std::string> api_keys; // none: no key is needed
    KeyLimitOptions key_limits;        // of each key; all requests together have one where no key is needed
    bool prefix_cache_per_key = false; // requests of two keys share no cached KV
    uint32_t max_requests = 4096;      // for text, embeddings or tokens at once; more are refused as exhausted
    bool vllm_metrics = false;         // beside Patchbay's own
    std::string version;
    std::optional<AdminOptions> admin; // none: nothing controls it while it runs
    std::shared_ptr<SlotLedger> ledger; // null: there is no supervisor
    uint32_t max_hang_s = 0;  // as EngineThreadOptions
    MakeEngine make_engine; // for a model that only a new engine can run; empty: there is no way to
};

class Server {
  public:
    // The metrics outlive the server.
    static Result<std::unique_ptr<Server>> start(const ServerOptions&, std::unique_ptr<engine::Engine>, ServedModel,
                                                 metrics::Metrics&);
    ~Server(); // stop()

    uint16_t port() const { return http_->port(); }
    const HttpServer& http() const { return *http_; }
    const Admin* admin() const { return admin_.get(); } // null: there is none
    // Not ready any more; refuses new requests for text and ends when all that it has are answered.
    void drain();
    void stop();                      // at once: what is unfinished is aborted
    void wait();                      // until it has drained, was stopped, or its engine failed
    void stop_on_signals();           // SIGINT and SIGTERM: the first drains, the second stops
    std::optional<std::string> failure() const; // of the engine
    service::EngineThread& engine() { return *engine_; }

  private:
    class Signals;

    Server(const ServerOptions&, std::unique_ptr<engine::Engine>, ServedModel, metrics::Metrics&);
    Result<> start_admin();

    const ServerOptions options_;
    ModelGate gate_;
    ServeMetrics metrics_;
    Routes routes_;
    Admission admission_;
    EngineObservers observers_; // on the engine's thread
    std::unique_ptr<service::EngineThread> engine_;
    std::optional<Drainer> drainer_;
    std::unique_ptr<ModelReplacement> replacement_;
    std::unique_ptr<HttpServer> http_;
    std::unique_ptr<Admin> admin_;
    std::unique_ptr<Signals> signals_;
};

}  // namespace patchbay::serve
