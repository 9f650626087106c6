#include "experiment/against_itself.hpp"

#include <gmock/gmock.h>

#include "experiment/spec_load.hpp"
#include "made_up_runs.hpp"

namespace patchbay::experiment::against_itself_test {
namespace {

using ::testing::HasSubstr;

TEST(AgainstItself, IsAsManyCopiesOfTheBaselineWithSeedsOfTheirOwn) {
    const auto document = config::parse_yaml("factors: {scheduler: [fcfs, sjf], engine.max_num_seqs: [4, 8]}\n"
                                                 "baseline: scheduler=sjf max_num_seqs=4\nseed: 7\nrepeats: 6\n"
                                                 "workload: {requests: 1, prompts: {synthetic: {tokens: 8}}, "
                                                 "output_tokens: 2}\n",
                                                 "e.yaml");
    ASSERT_TRUE(document) << document.error();
    const auto given = spec_from(*document, "e");
    ASSERT_TRUE(given) << given.error();
    const auto spec = spec_from(against_itself(*given, 3), "e");
    ASSERT_TRUE(spec) << spec.error();
    ASSERT_EQ(spec->variants.size(), 4u);
    for (const VariantSpec& v : spec->variants) {
        ASSERT_TRUE(v.patch.find("scheduler"));
        EXPECT_EQ(v.patch.find("scheduler")->text, "sjf");
    }
    EXPECT_EQ(spec->baseline, 0u);
    EXPECT_EQ(spec->seed, 10u);
    EXPECT_EQ(spec->repeats, 6u);
}

TEST(FalseRates, CountExperimentsVerdictsAndIntervals) {
    const Question q = question_of(0, {"e2e_mean", "ttft_p50"});
    const std::vector<Contestant> two{{"copy 1", {}}, {"copy 2", {}}};
    FalseRates rates;
    rates.add(conclude(all_runs(runs_with(70, 8, 0), runs_with(50, 8, 1)), two, q, {})); // as if it were false
    EXPECT_THAT(rates.text(),
                HasSubstr("a false verdict somewhere: 1 of 1 experiments, 100 % (95 % interval 2.50 % to "));
    EXPECT_THAT(rates.text(), HasSubstr("a false conclusion: 1 of 1"));
    EXPECT_THAT(rates.text(), HasSubstr("false verdicts among all: 2 of 2, 100 %"));
    rates.add(conclude(all_runs(runs_with(50, 8, 0), runs_with(50, 8, 1)), two, q, {}));
    EXPECT_THAT(rates.text(), HasSubstr("a false verdict somewhere: 1 of 2 experiments, 50.0 %"));
    EXPECT_THAT(rates.text(), HasSubstr("the same to the nanosecond in 1 experiments, which says nothing"));
    rates.add(conclude(all_runs(runs_with(50, 3, 0), runs_with(70, 3, 1)), two, q, {}));
    EXPECT_THAT(rates.text(), HasSubstr("1 experiments had fewer than 5 independent repeats and are not counted"));
}

TEST(FalseRates, CountNoVerdictThatTooFewRepeatsOfAMetricGive) {
    auto base = runs_with(50, 8, 0), copy = runs_with(50, 8, 1);
    for (auto* runs : {&base, &copy})
        for (size_t r = 3; r < 8; ++r)
            for (RequestRecord& request : (*runs)[r].requests) { // of one token each: they have no TPOT
                request.token_ns.resize(1);
                request.output.resize(1);
            }
    FalseRates rates;
    rates.add(conclude(all_runs(base, copy), {{"copy 1", {}}, {"copy 2", {}}}, question_of(0, {"e2e_mean", "tpot_p50"}),
                       {}));
    EXPECT_THAT(rates.text(), HasSubstr("a false verdict somewhere: 0 of 1 experiments"));
    EXPECT_THAT(rates.text(), HasSubstr("false verdicts among all: 0 of 1, 0 %"));
}

}  // namespace
}  // namespace patchbay::experiment::against_itself_test
