// A test outside the tree, with GoogleTest: patchbay/testing.hpp over the library that add_plugin() builds.
#include <gtest/gtest.h>

#include <algorithm>

#include "patchbay/testing.hpp"

namespace {

namespace pt = patchbay::testing;

const pt::Plugin kPlugin(PATCHBAY_TEST_PLUGIN);

TEST(LeastWork, CountsOutputsAndTheWait) {
    pt::Scheduler scheduler(kPlugin, {{"output_cost", "8"}, {"ageing", "0"}});
    pt::Step step;
    step.max_num_seqs = 1;
    step.waiting = {pt::waiting(1, 100), pt::waiting(2, 120)};
    step.waiting[0].max_tokens = 64;
    EXPECT_EQ(scheduler.plan(step).tokens(2), 120u);
    EXPECT_EQ(scheduler.plan(step).tokens(1), 0u);
}

TEST(LeastWork, KeepsItsContract) {
    const auto checks = pt::run_checks(PATCHBAY_TEST_PLUGIN);
    EXPECT_TRUE(std::ranges::any_of(checks, [](const auto& c) { return c.check == "scheduler.progress"; }));
    for (const pt::CheckResult& check : checks) EXPECT_FALSE(check.failed()) << check;
}

TEST(LeastWork, GetsSettingsThatItsSchemaAllows) {
    EXPECT_THROW(pt::Scheduler(kPlugin, {{"agein", "1"}}), std::runtime_error);
    EXPECT_THROW(pt::Scheduler(kPlugin, {{"ageing", "-1"}}), std::runtime_error);
    EXPECT_THROW(pt::Sampler{kPlugin}, std::runtime_error);
}

}  // namespace
