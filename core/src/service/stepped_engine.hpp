// A running engine whose loop is run_to_end(): what other threads want of it is done between two steps. Used where an
// engine has its requests beforehand and can be controlled all the same.
#pragma once
#include <mutex>
#include <vector>

#include "engine/loop/step_observer.hpp"
#include "service/live_engine.hpp"

namespace patchbay::service {

class SteppedEngine final : public LiveEngine, private engine::StepObserver {
  public:
    explicit SteppedEngine(engine::Engine& engine) : engine_(engine) { engine_.observe(*this); } // which outlives it
    ~SteppedEngine() override { end(); }

    // ---- the loop's thread ----
    void between_steps(); // before each step
    void end(); // of steps that it is to see: calls that wait are not made

    // ---- any other thread ----
    ServiceStatus status() const override;
    bool call(const std::function<void(engine::Engine&)>& f) override;
    std::vector<std::shared_ptr<host::Swap>> swap_together(std::vector<engine::SwapRequest>) override;

  private:
    void on_end(const engine::StepReport&) override;

    engine::Engine& engine_;
    mutable std::mutex mutex_;
    std::vector<std::function<void(engine::Engine&)>> calls_; // under the mutex, as what follows
    ServiceStatus status_;
};

}  // namespace patchbay::service
