// Live control of an engine that has its requests beforehand: an admin address beside a loop that is another's. Used by
// `patchbay generate` and the runs of experiments.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "metrics/catalogue.hpp"
#include "serve/admin.hpp"
#include "serve/serve_metrics.hpp"
#include "serve/slot_journal.hpp"
#include "service/stepped_engine.hpp"

namespace patchbay::serve {

struct LoopControlOptions {
    AdminOptions admin;
    std::string task, version;   // as Controlled has them
    std::function<void()> drain; // what POST /drain does
};

class LoopControl final : private engine::StepObserver {
  public:
    // Engine and metrics outlive it; the metrics are the engine's, which it keeps up to date.
    static Result<std::unique_ptr<LoopControl>> start(LoopControlOptions, engine::Engine&, metrics::Metrics&);
    ~LoopControl() override; // end()
    AdminAddress address() const { return admin_->address(); }

    // ---- the loop's thread ----
    void between_steps() { engine_.between_steps(); } // before each step
    void end(); // no step comes any more; returns when all answers are sent

    std::vector<std::string> changes() const; // by hand so far, in words [any thread]

  private:
    LoopControl(engine::Engine&, metrics::Metrics&);
    void on_end(const engine::StepReport&) override;
    void note(const std::string& change);

    engine::Engine& observed_;
    service::SteppedEngine engine_;
    SlotJournal journal_;
    ServeMetrics metrics_;
    mutable std::mutex mutex_;
    std::vector<std::string> changes_; // under the mutex
    std::unique_ptr<Admin> admin_;
};

}  // namespace patchbay::serve
