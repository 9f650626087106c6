// The server: OpenAI's API and what operators ask, over an engine on a thread of its own. Used by `patchbay serve`.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine_metrics.hpp"
#include "serve/admin.hpp"
#include "serve/fields.hpp"
#include "serve/generation.hpp"
#include "serve/key_limits.hpp"
#include "serve/model_gate.hpp"
#include "serve/model_replacement.hpp"
#include "serve/routes.hpp"
#include "serve/serve_metrics.hpp"
#include "serve/tenant_tokens.hpp"
#include "serve/vllm_metrics.hpp"
#include "service/engine_thread.hpp"

namespace patchbay::serve {

struct ServerOptions {
    HttpOptions http;
    std::vector<std::string> api_keys; // none: no key is needed
    KeyLimitOptions key_limits;        // of each key; all requests together have one where no key is needed
    bool prefix_cache_per_key = false; // requests of two keys share no cached KV
    uint32_t max_requests = 4096;      // for text, under way at once; more are refused as exhausted
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
    const Admin* admin() const { return admin_.get(); } // null: there is none
    bool ready() const;
    // Not ready any more; refuses new requests for text and ends when all that it has are answered.
    void drain();
    void stop();                      // at once: what is unfinished is aborted
    void wait();                      // until it has drained, was stopped, or its engine failed
    void stop_on_signals();           // SIGINT and SIGTERM: the first drains, the second stops
    std::optional<std::string> failure() const; // of the engine
    service::EngineThread& engine() { return *engine_; }
    size_t connections() const { return http_->connections(); } // open now

  private:
    Server(const ServerOptions&, std::unique_ptr<engine::Engine>, ServedModel, metrics::Metrics&);
    Result<> start_admin();
    void observe(const engine::EngineFacts&, const ServedModel&); // whose metrics are to come
    std::vector<Route> routes(); // server_routes.cpp

    // ---- operators (server_routes.cpp) ----
    void health(const std::shared_ptr<Exchange>&);
    void readiness(const std::shared_ptr<Exchange>&);
    void version(const std::shared_ptr<Exchange>&);
    HttpResponse metrics_text();
    void metrics_page(const std::shared_ptr<Exchange>&);
    void dashboard(const std::shared_ptr<Exchange>&);
    void models(const std::shared_ptr<Exchange>&);
    void tokenize(const std::shared_ptr<Exchange>&);
    void detokenize(const std::shared_ptr<Exchange>&);
    // ---- text ----
    void completions(const std::shared_ptr<Exchange>&);
    void chat_completions(const std::shared_ptr<Exchange>&);
    void embeddings(const std::shared_ptr<Exchange>&);
    using Read = ReadRequest (*)(const Json&, const ServedModel&);
    void generate(const std::shared_ptr<Exchange>&, Read, const char* id_prefix);
    void read_and_submit(const std::shared_ptr<Exchange>&, Read, const char* id_prefix, std::shared_ptr<void> permit,
                         ModelGate::Entered);
    void submit(const std::shared_ptr<Exchange>&, GenerationRequest, const char* id_prefix,
                std::shared_ptr<void> permit, const std::shared_ptr<const Serving>&);
    std::shared_ptr<void> permit(); // null: too many are under way
    // What a request holds while it is under way; null: it is refused, and answered so.
    std::shared_ptr<void> admit(const std::shared_ptr<Exchange>&);

    const ServerOptions options_;
    ModelGate gate_;
    ServeMetrics metrics_;
    metrics::Metrics& all_metrics_;
    SlotJournal journal_;
    const Routes routes_;
    std::optional<engine::EngineMetrics> engine_metrics_; // changed by the engine's thread
    TenantTokens tenant_tokens_;
    std::optional<VllmMetrics> vllm_metrics_;
    KeyLimits key_limits_;
    std::atomic<uint32_t> under_way_ = 0;
    std::atomic<uint64_t> next_id_ = 1;
    std::atomic<bool> draining_ = false;

    std::mutex mutex_;
    std::thread drainer_; // under the mutex
    struct Signals;
    std::unique_ptr<service::EngineThread> engine_;
    std::unique_ptr<ModelReplacement> replacement_;
    std::unique_ptr<HttpServer> http_;
    std::unique_ptr<Admin> admin_;
    std::unique_ptr<Signals> signals_;
};

}  // namespace patchbay::serve
