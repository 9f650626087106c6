#include "experiment/jitter.hpp"

#include <cmath>

namespace patchbay::experiment {

JitteredEngine::JitteredEngine(engine::SteppingEngine& engine, VirtualClock& clock, const Jitter& jitter,
                               const Draws& draws)
    : engine_(engine), clock_(clock), jitter_(jitter), draws_(draws) {}

Result<engine::StepReport> JitteredEngine::step() {
    auto report = engine_.step();
    if (!report || report->work.scheduled_tokens == 0) return report; // waiting for arrivals is no step
    const double late = jitter_.step_jitter * std::abs(draws_.normal(Purpose::kStepJitter, steps_++)) +
                        jitter_.run_jitter * std::abs(draws_.normal(Purpose::kRunJitter, 0));
    clock_.advance_ns(static_cast<uint64_t>(std::expm1(late) * static_cast<double>(report->end_ns - report->start_ns)));
    return report;
}

Draws jitter_draws(uint64_t seed, uint32_t repeat, size_t variant) {
    return Draws(Draws(seed, repeat).word(Purpose::kRunJitter, variant), 0);
}

}  // namespace patchbay::experiment
