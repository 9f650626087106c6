// What an experiment shows of a run while it goes on: metrics, whose counters go on from run to run, and progress.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/metrics/engine_metrics.hpp"
#include "experiment/one_run.hpp"

namespace patchbay::experiment {

struct RunProgress {
    size_t run, runs;               // from 0
    const std::string* variant;
    uint32_t repeat;
    size_t finished, requests;      // of this run
};

struct Shown { // where; either may be empty
    metrics::Metrics* metrics = nullptr;
    std::function<void(const RunProgress&)> progress;
    std::string experiment, version;
};

// patchbay_experiment_info, by which a scrape sees which variant the engine's metrics are growing by.
void mark_running(const Shown&, const std::string& variant, bool is_running);

class RowSink { // where rows of a run are stored while it goes on
  public:
    virtual ~RowSink() = default;
    virtual void take(const Rows&) = 0;
};

class LiveRun final : public RunListener {
  public:
    LiveRun(const Shown&, const std::string& variant, const RunSlot&, size_t run, size_t runs, RowSink* = nullptr);
    std::vector<RequestRecord> take_requests() { return std::move(requests_); } // in the order of the workload
    ~LiveRun() override;
    bool wants_metrics() const override { return shown_.metrics != nullptr; }
    void on_engine(const engine::EngineFacts&) override;
    void on_progress(size_t finished, size_t of) override;
    void on_request(engine::RequestId, uint64_t arrival_ns, uint32_t prompt_tokens, uint32_t n) override;
    void on_output(const engine::RequestOutput&) override;
    void on_step(const engine::StepReport&) override;
    void on_rows(Rows) override;
    void add(const std::string& kind, const std::string& component, const std::string& name, double amount) override;
    void set(const std::string& kind, const std::string& component, const std::string& name, double value) override;

  private:
    const Shown& shown_;
    const std::string& variant_;
    const RunSlot slot_;
    const size_t run_, runs_;
    RowSink* const sink_; // may be null
    std::vector<RequestRecord> requests_; // that have ended
    std::optional<engine::PluginMetrics> plugins_;
    std::optional<engine::EngineMetrics> engine_;
};

}  // namespace patchbay::experiment
