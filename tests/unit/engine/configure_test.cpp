// Hot parameters of a component in a slot, changed between two steps.
#include <gmock/gmock.h>

#include "engine/engine_control.hpp"
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::configure_test {
namespace {

using namespace testing;
using ::testing::HasSubstr;

config::EngineConfig with_scheduler(const std::string& name, host::Settings settings) {
    config::EngineConfig c = tiny_model();
    c.scheduler.plugin = name;
    c.scheduler.settings = std::move(settings);
    return c;
}

TEST(Configure, ChangesWhatTheNextStepDoes) {
    Harness h(with_scheduler("sarathi", {{"chunk", "10"}}));
    h.add(random_prompt(1, 100), greedy(1));
    EXPECT_EQ(h.step().work.scheduled_tokens, 10u);
    const auto done = h.engine->control().configure(SwapSlot::kScheduler, {{"chunk", "25"}});
    ASSERT_TRUE(done) << done.error();
    EXPECT_EQ(h.step().work.scheduled_tokens, 25u);
}

TEST(Configure, TakesAllOrNothing) {
    Harness h(with_scheduler("srpt", {}));
    const auto refusal = [&](host::Settings changes) {
        const auto done = h.engine->control().configure(SwapSlot::kScheduler, std::move(changes));
        return done ? "taken" : done.error();
    };
    EXPECT_THAT(refusal({{"ageing", "3"}, {"predictr", "oracle"}}), HasSubstr("did you mean 'predictor'"));
    EXPECT_THAT(refusal({{"ageing", "3"}, {"predictor", "stars"}}), HasSubstr("stars"));
    EXPECT_THAT(refusal({{"ageing", "-1"}}), HasSubstr("ageing"));
    EXPECT_EQ(refusal({{"ageing", "3"}, {"predictor", "oracle"}}), "taken");
}

TEST(Configure, OfAComponentWithoutHotParametersIsRefused) {
    Harness h(with_scheduler("fcfs", {}));
    EXPECT_TRUE(h.engine->control().configure(SwapSlot::kScheduler, {})) << "nothing changes";
    EXPECT_THAT(h.engine->control().configure(SwapSlot::kScheduler, {{"chunk", "3"}}).error(), HasSubstr("chunk"));
}

TEST(Configure, LeavesWhatIsNotGiven) {
    Harness h(with_scheduler("sarathi", {{"chunk", "10"}}));
    h.add(random_prompt(1, 100), greedy(1));
    ASSERT_TRUE(h.engine->control().configure(SwapSlot::kScheduler, {}));
    EXPECT_EQ(h.step().work.scheduled_tokens, 10u);
}

}  // namespace
}  // namespace patchbay::engine::configure_test
