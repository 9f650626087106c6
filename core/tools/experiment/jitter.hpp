// Noise for simulated runs: without it a step takes what the model of the hardware says, every time. The host is late
// after each step, by a share of what the step took; it never is early.
#pragma once
#include "base/clock.hpp"
#include "engine/stepping.hpp"
#include "experiment/draws.hpp"
#include "experiment/drive.hpp"

namespace patchbay::experiment {

class JitteredEngine final : public engine::SteppingEngine {
  public:
    // draws: of this run alone. The engine has to be on that clock.
    JitteredEngine(engine::SteppingEngine&, VirtualClock&, const Jitter&, const Draws& draws);
    Result<engine::RequestId> add_request(engine::Request r) override { return engine_.add_request(std::move(r)); }
    void abort(engine::RequestId id) override { engine_.abort(id); }
    bool has_unfinished() const override { return engine_.has_unfinished(); }
    Result<> check() const override { return engine_.check(); }
    Result<engine::StepReport> step() override;
    Clock& clock() override { return clock_; }

  private:
    engine::SteppingEngine& engine_;
    VirtualClock& clock_;
    Jitter jitter_;
    Draws draws_;
    uint64_t steps_ = 0;
};

// Of a run, so that variants have noise of their own though they have the same requests.
Draws jitter_draws(uint64_t seed, uint32_t repeat, size_t variant);

}  // namespace patchbay::experiment
