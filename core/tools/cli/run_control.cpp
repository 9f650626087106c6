#include "cli/run_control.hpp"

#include <atomic>

#include "cli/admin_flags.hpp"
#include "engine/metrics/engine_metrics.hpp"

namespace patchbay::cli {
namespace {

class LiveRunControl final : public experiment::RunControl {
  public:
    explicit LiveRunControl(engine::Engine& engine)
        : engine_(engine), metrics_(all_, engine.facts(), PATCHBAY_VERSION) {
        engine_.observe(metrics_);
    }
    ~LiveRunControl() override { engine_.stop_observing(metrics_); }

    // False: there is no control.
    Result<bool> start(const AdminFlags& flags, const experiment::ControlledRun& run) {
        const auto drain = [this] { draining_ = true; };
        PB_TRY(control_, start_control(flags, run.plugin_dirs, run.config, run.task, drain, engine_, all_));
        return control_ != nullptr;
    }

    void between_steps() override { control_->between_steps(); }
    void on_request(engine::RequestId id, uint64_t arrival_ns, uint32_t prompt_tokens, uint32_t n) override {
        metrics_.on_request(id, arrival_ns, prompt_tokens, n);
    }
    void on_output(const engine::RequestOutput& out) override { metrics_.on_output(out); }
    bool draining() const override { return draining_; }
    std::vector<std::string> end() override {
        control_->end();
        return control_->changes();
    }

  private:
    engine::Engine& engine_;
    metrics::Metrics all_;
    engine::EngineMetrics metrics_;
    std::atomic<bool> draining_ = false;
    std::unique_ptr<serve::LoopControl> control_;
};

}  // namespace

Result<std::unique_ptr<experiment::RunControl>> make_run_control(const experiment::ControlledRun& run) {
    const AdminFlags flags{run.choice.address, run.choice.token_file};
    std::unique_ptr<experiment::RunControl> none;
    if (flags.none() || (run.simulated && !flags.named())) return none;
    auto control = std::make_unique<LiveRunControl>(run.engine);
    PB_TRY(const bool started, control->start(flags, run));
    return started ? std::unique_ptr<experiment::RunControl>(std::move(control)) : std::move(none);
}

}  // namespace patchbay::cli
