// Who watches the engine of a server: its metrics, those under vLLM's names, the tokens of each API key, the journal
// of its slots, and the ledger of its supervisor. Used by Server.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "engine/metrics/engine_metrics.hpp"
#include "serve/slot_journal.hpp"
#include "serve/slot_ledger.hpp"
#include "serve/tenant_tokens.hpp"
#include "serve/vllm_metrics.hpp"
#include "service/engine_thread.hpp"

namespace patchbay::serve {

struct EngineObserverOptions {
    std::string version;               // of Patchbay, which the metrics show
    bool vllm_metrics = false;         // beside Patchbay's own
    std::shared_ptr<SlotLedger> ledger{}; // null: there is no supervisor
    config::EngineConfig configuration{}; // EngineControl::configuration(), for the parameters of what is in slots
};

class EngineObservers final : public engine::StepObserver { // on the engine's thread, once that runs
  public:
    // The metrics outlive it. served_name: of the model.
    EngineObservers(EngineObserverOptions, metrics::Metrics&, const engine::EngineFacts&,
                    const std::string& served_name);

    // Another engine takes over: the metrics that are about the present begin anew.
    void watch(const engine::EngineFacts&, const std::string& served_name);

    void on_request(engine::RequestId, const engine::Request&);
    void on_output(const engine::RequestOutput&);
    void on_end(const engine::StepReport&) override;

    SlotJournal& journal() { return journal_; } // [any thread]

  private:
    void count_restarts(const std::vector<host::Identity>& slots);

    const EngineObserverOptions options_;
    metrics::Metrics& all_metrics_;
    SlotJournal journal_;
    TenantTokens tenant_tokens_;
    std::optional<engine::EngineMetrics> engine_metrics_;
    std::optional<VllmMetrics> vllm_metrics_;
};

}  // namespace patchbay::serve
