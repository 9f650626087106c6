#include "experiment/jitter.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace patchbay::experiment::jitter_test {
namespace {

constexpr uint64_t kStepNs = 1'000'000;

// Each step takes a millisecond; an idle one waits as long.
class SteadyEngine final : public engine::SteppingEngine {
  public:
    explicit SteadyEngine(VirtualClock& clock) : clock_(clock) {}
    Result<engine::RequestId> add_request(engine::Request) override { return 1; }
    void abort(engine::RequestId) override {}
    bool has_unfinished() const override { return true; }
    Result<> check() const override { return {}; }
    Clock& clock() override { return clock_; }
    Result<engine::StepReport> step() override {
        engine::StepReport r;
        r.start_ns = clock_.now_ns();
        clock_.advance_ns(kStepNs);
        r.end_ns = clock_.now_ns();
        r.work.scheduled_tokens = scheduled;
        return r;
    }
    uint32_t scheduled = 1;

  private:
    VirtualClock& clock_;
};

uint64_t time_of(const Jitter& jitter, uint32_t repeat, size_t variant, uint32_t steps, uint32_t scheduled = 1) {
    VirtualClock clock;
    SteadyEngine steady(clock);
    steady.scheduled = scheduled;
    JitteredEngine engine(steady, clock, jitter, jitter_draws(1, repeat, variant));
    for (uint32_t i = 0; i < steps; ++i) EXPECT_TRUE(engine.step());
    return clock.now_ns();
}

TEST(Jitter, MakesStepsLateByTheGivenShare) {
    constexpr uint32_t kSteps = 20000;
    const double share = static_cast<double>(time_of({0.1, 0}, 0, 0, kSteps)) / (kSteps * double{kStepNs}) - 1;
    EXPECT_NEAR(share, 0.0849, 0.003); // 2 exp(0.005) Φ(0.1) − 1
    EXPECT_EQ(time_of({}, 0, 0, 10), 10 * kStepNs);
    EXPECT_EQ(time_of({0.1, 0.1}, 0, 0, 10, 0), 10 * kStepNs); // waiting is no step
}

TEST(Jitter, OfARunIsTheSameForAllItsSteps) {
    const uint64_t one = time_of({0, 0.1}, 0, 0, 1), ten = time_of({0, 0.1}, 0, 0, 10);
    EXPECT_GT(one, kStepNs);
    EXPECT_EQ(ten, 10 * one);
}

TEST(Jitter, IsAnotherForEachRunAndTheSameEachTime) {
    const Jitter jitter{0.1, 0.1};
    EXPECT_EQ(time_of(jitter, 0, 0, 5), time_of(jitter, 0, 0, 5));
    EXPECT_NE(time_of(jitter, 0, 0, 5), time_of(jitter, 0, 1, 5));
    EXPECT_NE(time_of(jitter, 0, 0, 5), time_of(jitter, 1, 0, 5));
}

}  // namespace
}  // namespace patchbay::experiment::jitter_test
