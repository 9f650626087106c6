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

// A plugin that ships with Patchbay.
pt::Plugin shipped(const std::string& file) { return pt::Plugin(PATCHBAY_SHIPPED_PLUGINS "/" + file); }

TEST(Settings, OfEachTypeAreThoseThatTheSchemaAllows) {
    const pt::Plugin srpt = shipped("scheduler-srpt.so");
    EXPECT_NO_THROW(pt::Scheduler(srpt, {{"predictor", "oracle"}, {"output", "7"}, {"preempt", "false"}}));
    for (const pt::Settings& wrong : {pt::Settings{{"predictor", "guess"}}, pt::Settings{{"output", "1.5"}},
                                      pt::Settings{{"output", "0"}}, pt::Settings{{"preempt", "maybe"}},
                                      pt::Settings{{"ageing", "nan"}}})
        EXPECT_THROW(pt::Scheduler(srpt, wrong), std::runtime_error) << wrong.begin()->first;
}

TEST(Sampler, ReportsTopListsAndSurprisals) {
    pt::Sampler sampler(shipped("sampler-standard.so"));
    pt::LogitRow plain{.logits = {1, 3, 2, -4}}, steered = plain;
    plain.params.logprobs = 3; // that of the sampled token, and the two highest
    steered.params.mirostat_tau = 2;
    steered.params.mirostat_eta = 0.1f;
    steered.output = {1, 2};
    steered.surprisals = {0.5f, 1.5f};
    const pt::Sampled out = sampler.sample({plain, steered});
    EXPECT_EQ(out.top_count, 2u);
    EXPECT_EQ(out.top_tokens, (std::vector<int32_t>{1, 2, -1, -1}));
    EXPECT_FLOAT_EQ(out.top_logprobs[0] - out.top_logprobs[1], 1);
    EXPECT_GE(out.surprisals[1], 0);
    EXPECT_LT(out.surprisals[1], 6);
    steered.surprisals.pop_back();
    EXPECT_THROW(sampler.sample(steered), patchbay::Error);
}

}  // namespace
