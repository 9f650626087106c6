// What every executor on this rank keeps to, whatever computes its steps.
#include <gmock/gmock.h>

#include "execution/scripted_executor.hpp"
#include "unit/execution/played_step.hpp"

namespace patchbay::execution::testing::executors_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct NoScript final : Script {
    void planned(std::span<const pb_plan_item>) override {}
    void sampled(std::span<const ScriptedRows>) override {}
};

using Runner = std::unique_ptr<runner::ModelRunner>;
struct Kind {
    const char* name;
    std::unique_ptr<Executor> (*make)(Runner, Script&);
};
constexpr Kind kKinds[] = {
    {"Local", [](Runner r, Script&) -> std::unique_ptr<Executor> {
         return std::make_unique<LocalExecutor>(std::move(r));
     }},
    {"Simulated", [](Runner r, Script&) -> std::unique_ptr<Executor> {
         return std::make_unique<SimulatedExecutor>(std::move(r), nullptr, std::vector<int32_t>{});
     }},
    {"Scripted", [](Runner r, Script& script) -> std::unique_ptr<Executor> {
         return std::make_unique<ScriptedExecutor>(std::move(r), nullptr, std::vector<int32_t>{}, script, nullptr);
     }},
};

class Executors : public ::testing::TestWithParam<Kind> { // over a device whose steps can be in flight
  protected:
    Executors() {
        first.add(1, {3});
        second.add(2, {4}).add(3, {5});
    }
    void expect_none_in_flight() {
        EXPECT_THAT(part->wait({}).error(), HasSubstr("no step is in flight"));
        ASSERT_TRUE(part->submit(second.overlapping()));
        EXPECT_TRUE(part->wait(second.paths())) << "and the next one is well";
    }
    NoScript script;
    PlayedRunner played{false};
    std::unique_ptr<Executor> part = GetParam().make(std::move(played.runner), script);
    PlayedStep first, second;
};

TEST_P(Executors, WithoutAStepThereIsNothingToWaitFor) { expect_none_in_flight(); }

TEST_P(Executors, AStepThatDoesNotOverlapIsRefusedWhereOneIsNotBack) {
    ASSERT_TRUE(part->submit(first.overlapping()));
    EXPECT_EQ(part->submit(second.input()).code(), StatusCode::kInternal);
    expect_none_in_flight();
    ASSERT_TRUE(part->submit(first.input()));
    EXPECT_EQ(part->submit(second.input()).code(), StatusCode::kInternal);
    expect_none_in_flight();
}

TEST_P(Executors, AStepThatCannotBeSubmittedCancelsTheOneInFlight) {
    ASSERT_TRUE(part->submit(first.overlapping()));
    played.computed->fault = "it cannot multiply";
    EXPECT_THAT(part->submit(second.overlapping()).error(), HasSubstr("it cannot multiply"));
    EXPECT_THAT(played.fake->calls, ElementsAre("begin", "submit", "begin", "submit", "wait", "wait"));
    expect_none_in_flight();
}

TEST_P(Executors, AStepThatFailsCancelsTheOneAfterIt) {
    ASSERT_TRUE(part->submit(first.overlapping()));
    ASSERT_TRUE(part->submit(second.overlapping()));
    played.fake->fault = "it broke";
    EXPECT_THAT(part->wait(first.paths()).error(), HasSubstr("it broke"));
    expect_none_in_flight();
}

INSTANTIATE_TEST_SUITE_P(Every, Executors, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace patchbay::execution::testing::executors_test
