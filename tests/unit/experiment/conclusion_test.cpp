#include "experiment/conclusion.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cmath>

#include "experiment/disturbance.hpp"
#include "made_up_runs.hpp"

namespace patchbay::experiment::conclusion_test {
namespace {

using ::testing::HasSubstr;
const Question kE2e = question_of(0, {"e2e_mean"});

TEST(Conclusion, CountsRequestsWhoseOutputIsTheBaselines) {
    const auto base = runs_with(50, 5, 0);
    auto other = runs_with(50, 5, 1);
    for (RunRecord& r : other) r.requests[0].output[1] = 99;
    const Conclusion c = conclude(all_runs(base, other), {{"a", {}}, {"b", {}}}, kE2e, {});
    EXPECT_DOUBLE_EQ(c.results[1].comparison.same_output, 0.95);
}

TEST(Conclusion, ComparesNoOutputsOfOtherRequestsAndNoneThatOneOfTheTwoLacks) {
    const auto base = runs_with(50, 5, 0);
    auto other = runs_with(50, 5, 1);
    for (RunRecord& r : other) r.requests.resize(4);
    const Conclusion fewer = conclude(all_runs(base, other), {{"a", {}}, {"b", {}}}, kE2e, {});
    EXPECT_EQ(fewer.results[1].comparison.pairs, 20u);
    EXPECT_DOUBLE_EQ(fewer.results[1].comparison.same_output, 1);
    const Conclusion apart = conclude(all_runs(base, other), {{"a", {}}, {"b", {}, false}}, kE2e, {});
    EXPECT_EQ(apart.results[1].comparison.pairs, 0u);
    EXPECT_EQ(apart.results[1].comparison.repeats, 5u);
    EXPECT_TRUE(std::isnan(apart.results[1].comparison.same_output));
    EXPECT_THAT(apart.notices, ::testing::Contains(HasSubstr("other requests than the baseline's were sent to b")));
}

TEST(Conclusion, ShowsClassesOfRequestsWithIntervalsAndWithoutVerdicts) {
    auto slow = runs_with(70, 6, 0), fast = runs_with(50, 6, 1);
    for (auto* runs : {&slow, &fast})
        for (RunRecord& r : *runs)
            for (size_t i = 0; i < r.requests.size(); ++i) {
                r.requests[i].tenant = i < 15 ? 2 : 10;
                if (i >= 15) r.requests[i].prompt_tokens = 300;
                if (i >= 15)
                    for (uint64_t& at : r.requests[i].token_ns) at += 100 * kMs;
            }
    const Conclusion c = conclude(all_runs(slow, fast), {{"slow", {}}, {"fast", {}}}, kE2e, {},
                                  {{ClassKind::kTenant, {}}, {ClassKind::kPromptLength, {256}}});
    ASSERT_EQ(c.classes.size(), 4u);
    EXPECT_EQ(c.classes[0].by + " " + c.classes[0].name, "tenant 2");
    EXPECT_EQ(c.classes[1].name, "10") << "by number, not by letters";
    EXPECT_EQ(c.classes[3].by + " " + c.classes[3].name, "prompt_length > 256");
    EXPECT_THAT(c.classes[0].requests, ::testing::ElementsAre(90u, 90u));
    EXPECT_NEAR(value_of(c.classes[1].results[0].metrics, "ttft_mean"), 170 + 4.5, 5);
    EXPECT_NEAR(value_of(c.classes[0].results[1].metrics, "ttft_mean"), 50 + 4.5, 5);
    const Difference& d = difference_of(c.classes[0].results[1].comparison, "ttft_mean");
    EXPECT_EQ(d.verdict, Verdict::kExploratory);
    EXPECT_LT(d.high, 0);
    EXPECT_TRUE(std::isnan(value_of(c.classes[0].results[0].metrics, "kv_mean"))) << "which no class has";
}

TEST(Conclusion, LooksAtNoRunThatAnotherAttemptReplaced) {
    auto runs = summaries(all_runs(runs_with(70, 5, 0), runs_with(50, 5, 1)));
    runs.push_back(runs[7]);
    supersede(runs[7], runs.back());
    for (double& m : runs[7].metrics) m *= 100;
    const Conclusion c = conclude(runs, {{"slow", {}}, {"fast", {}}}, kE2e);
    EXPECT_EQ(c.winner, "fast");
    EXPECT_NEAR(value_of(c.results[1].metrics, "e2e_mean"), 90, 0.1);
    EXPECT_TRUE(c.notices.empty());
}

TEST(Conclusion, NamesNoWinnerWhereTheSecondAttemptAtARunFailed) {
    auto runs = summaries(all_runs(runs_with(70, 5, 0), runs_with(50, 5, 1)));
    runs.push_back(runs[7]);
    RunSummary& second = runs.back();
    second.attempt = 1;
    second.end = RunEnd::kFailed;
    second.faults = {"scheduler 'bad': plan: SIGSEGV in step 3"};
    supersede(second, runs[7]);
    const Conclusion c = conclude(runs, {{"slow", {}}, {"fast", {}}}, kE2e);
    EXPECT_EQ(c.winner, "");
    EXPECT_EQ(c.sentence, "no winner is named: not all runs are valid");
    EXPECT_NEAR(value_of(c.results[1].metrics, "e2e_mean"), 90, 0.1) << "the first one counts";
    EXPECT_THAT(c.notices, ::testing::ElementsAre("the second attempt at run 8 (fast, repeat 3) is invalid, so the "
                                                  "first one counts: scheduler 'bad': plan: SIGSEGV in step 3"));
}

TEST(Conclusion, JudgesMetricsOfPluginsWhereTheyArePrimary) {
    auto runs = summaries(all_runs(runs_with(70, 6, 0), runs_with(70, 6, 1)));
    for (RunSummary& r : runs)
        r.of_plugins = {{"plugin.scheduler.depth", 10.0 * static_cast<double>(r.variant) + 0.1 * r.repeat * r.repeat},
                        {"plugin.sampler.redrawn_total", 3}};
    Question q = question_of(0, {"e2e_mean"});
    q.list.push_back(plugin_metric("plugin.scheduler.depth"));
    q.list.push_back(plugin_metric("plugin.proposer.none"));
    q.primary = {q.list.size() - 2, q.list.size() - 1};
    const Conclusion c = conclude(runs, {{"a", {}}, {"b", {}}}, q);
    const size_t depth = metric_named("plugin.scheduler.depth", c.list).value();
    const size_t redrawn = metric_named("plugin.sampler.redrawn_total", c.list).value();
    EXPECT_EQ(c.results[1].comparison.metrics[depth].verdict, Verdict::kDifferent);
    EXPECT_NEAR(c.results[1].comparison.metrics[depth].value, 10, 1e-9);
    EXPECT_DOUBLE_EQ(c.results[0].metrics[redrawn], 3);
    EXPECT_EQ(c.results[1].comparison.metrics[redrawn].verdict, Verdict::kExploratory);
    EXPECT_THAT(c.notices, ::testing::Contains("no run has a value of the primary metric 'plugin.proposer.none'; "
                                               "plugins have plugin.sampler.redrawn_total"));
}

TEST(Conclusion, TakesWhatNeverHappenedInARunForZeroWhereItHappensInAnother) {
    auto runs = summaries(all_runs(runs_with(70, 6, 0), runs_with(70, 6, 1)));
    const size_t passes = *metric_named("batch_sequences"), time = *metric_named("time_proposer_propose");
    for (RunSummary& r : runs) {
        if (r.repeat > 0) r.metrics[passes] = 4;
        if (r.variant == 0 || r.repeat % 2 == 0) continue;
        r.metrics[time] = 5;
        r.of_plugins = {{"plugin.sampler.redrawn_total", 6}, {"plugin.scheduler.depth", 2}};
    }
    const Conclusion c = conclude(runs, {{"a", {}}, {"b", {}}}, kE2e);
    const size_t redrawn = metric_named("plugin.sampler.redrawn_total", c.list).value();
    const size_t depth = metric_named("plugin.scheduler.depth", c.list).value();
    EXPECT_DOUBLE_EQ(c.results[1].metrics[redrawn], 3);
    EXPECT_DOUBLE_EQ(c.results[1].metrics[time], 3) << "but not of the repeat without a step";
    EXPECT_DOUBLE_EQ(c.results[1].metrics[depth], 2) << "a gauge that was not set has no value";
    for (const size_t metric : {redrawn, time}) EXPECT_TRUE(std::isnan(c.results[0].metrics[metric]));
}

Capacities found(std::vector<std::vector<double>> values) {
    Capacities out{.found = std::move(values), .beyond = {}, .notices = {}};
    for (const auto& of_variant : out.found) out.beyond.emplace_back(of_variant.size());
    return out;
}

TEST(Conclusion, TakesCapacitiesAsNumbersOfRepeats) {
    const auto runs = summaries(all_runs(runs_with(70, 5, 0), runs_with(50, 5, 1)));
    const Question q = question_of(0, {"capacity"});
    const Conclusion c = conclude(runs, {{"slow", {}}, {"fast", {}}}, q, {},
                                  found({{4, 4.1, 4, 4.2, 4}, {8, 8.3, 8, 8, 8.1}}));
    EXPECT_EQ(c.winner, "fast");
    EXPECT_THAT(c.sentence, HasSubstr("fast has the best capacity: 8.08 req/s against 4.06 req/s of slow"));
}

// Three variants: two ended at the highest rate of the search, the baseline below.
TEST(Conclusion, TakesCapacitiesAtTheHighestRateForBounds) {
    const auto runs = summaries(all_runs(all_runs(runs_with(70, 5, 0), runs_with(50, 5, 1)), runs_with(50, 5, 2)));
    const size_t metric = *metric_named("capacity");
    Question q = question_of(0, {"capacity"});
    Capacities capacities = found({{4, 4.1, 4, 4.2, 4}, {50, 50, 50, 50, 50}, {50, 49, 50, 48, 50}});
    capacities.beyond[1] = {true, true, true, true, true};
    capacities.beyond[2] = {true, false, true, false, true};
    const std::vector<Contestant> contestants{{"a", {}}, {"b", {}}, {"c", {}}};
    const Conclusion c = conclude(runs, contestants, q, {}, capacities);
    EXPECT_EQ(c.winner, "");
    EXPECT_THAT(c.sentence, HasSubstr("no winner is named: no more than a bound is known of the capacity of b (at "
                                      "least 50.0 req/s) and c (at least 49.4 req/s)"));
    EXPECT_FALSE(c.results[0].bounds.contains(metric));
    for (const size_t v : {1, 2}) {
        const Difference& d = c.results[v].comparison.metrics[metric];
        EXPECT_TRUE(c.results[v].bounds.contains(metric));
        EXPECT_EQ(d.verdict, Verdict::kAtLeast);
        EXPECT_GT(d.value, 45);
        EXPECT_TRUE(std::isnan(d.low) && std::isnan(d.high) && std::isnan(d.p) && std::isnan(d.detectable));
    }
    q.baseline = 1;
    const Conclusion turned = conclude(runs, contestants, q, {}, capacities);
    EXPECT_EQ(turned.results[0].comparison.metrics[metric].verdict, Verdict::kAtMost);
    EXPECT_LT(turned.results[0].comparison.metrics[metric].value, -45);
    const Difference& of_bounds = turned.results[2].comparison.metrics[metric];
    EXPECT_TRUE(std::isnan(of_bounds.value)) << "of two bounds";
    EXPECT_FALSE(is_same(of_bounds));
    EXPECT_EQ(of_bounds.verdict, Verdict::kNone);
}

// 0 is no more than a lower bound either.
TEST(Conclusion, TakesCapacitiesBelowTheLowestRateForBounds) {
    const auto runs = summaries(all_runs(runs_with(70, 5, 0), runs_with(50, 5, 1)));
    const size_t metric = *metric_named("capacity");
    const auto of = [&](std::vector<double> a, std::vector<double> b) {
        return conclude(runs, {{"a", {}}, {"b", {}}}, question_of(0, {"capacity"}), {},
                        found({std::move(a), std::move(b)}));
    };
    const Conclusion one = of({4, 4.1, 4, 4.2, 4}, {0, 1, 0, 1.1, 0});
    EXPECT_TRUE(one.results[1].bounds.contains(metric));
    EXPECT_FALSE(one.results[0].bounds.contains(metric));
    EXPECT_EQ(one.results[1].comparison.metrics[metric].verdict, Verdict::kAtLeast);
    EXPECT_EQ(one.winner, "");
    EXPECT_THAT(one.sentence, HasSubstr("no more than a bound is known of the capacity of b (at least 0.420 req/s)"));
    const Difference both = of({0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}).results[1].comparison.metrics[metric];
    EXPECT_EQ(both.verdict, Verdict::kNone);
    EXPECT_FALSE(is_same(both)) << "how much below the lowest rate each is, is not known";
}

// A measured one may be shown to be better than the baseline, and not to be the best.
TEST(Conclusion, NamesNoWinnerBesideACapacityThatIsABound) {
    const auto runs = summaries(all_runs(all_runs(runs_with(70, 5, 0), runs_with(50, 5, 1)), runs_with(50, 5, 2)));
    Capacities capacities = found({{4, 4.1, 4, 4.2, 4}, {8, 8.3, 8, 8, 8.1}, {9, 9, 9, 9, 9}});
    capacities.beyond[2].assign(5, true);
    const Conclusion c =
        conclude(runs, {{"a", {}}, {"b", {}}, {"c", {}}}, question_of(0, {"capacity"}), {}, capacities);
    EXPECT_EQ(c.winner, "");
    EXPECT_THAT(c.sentence, HasSubstr("b has a better capacity than a: 8.08 req/s"));
    EXPECT_THAT(c.sentence,
                HasSubstr("; c (at least 9.00 req/s) cannot be distinguished from it, so no winner is named"));
}

TEST(Conclusion, NamesTheVariantWithTheBestHeadlineMetric) {
    const Conclusion c =
        conclude(all_runs(runs_with(70, 5, 0), runs_with(50, 5, 1)), {{"slow", {}}, {"fast", {}}}, kE2e, {});
    EXPECT_EQ(c.winner, "fast");
    EXPECT_THAT(c.sentence,
                HasSubstr("fast has the best E2E mean: 90.0 ms against 110 ms of slow (difference -20.0 ms, "));
    EXPECT_TRUE(c.notices.empty());
}

TEST(Conclusion, WarnsWhereTheWinnerSaysSomethingElse) {
    auto fast = runs_with(50, 5, 1);
    for (RunRecord& r : fast) r.requests[0].output[1] = 99;
    const Conclusion c = conclude(all_runs(runs_with(70, 5, 0), fast), {{"slow", {}}, {"fast", {}}}, kE2e, {});
    EXPECT_THAT(c.sentence, HasSubstr("outputs differ from those of slow in 5.00 % of the requests"));
}

TEST(Conclusion, NamesAWinnerOnlyWhereTheNextOneIsShownToBeWorse) {
    const std::vector<Contestant> three{{"slow", {}}, {"fast", {}}, {"faster", {}}};
    const auto two = all_runs(runs_with(70, 5, 0), runs_with(50, 5, 1));
    const Conclusion apart = conclude(all_runs(two, runs_with(40, 5, 2)), three, kE2e, {});
    EXPECT_EQ(apart.winner, "faster");
    EXPECT_THAT(apart.sentence, HasSubstr("against 110 ms of slow (difference"));
    EXPECT_THAT(apart.sentence, HasSubstr("and 90.0 ms of fast (difference"));
    const Conclusion tied = conclude(all_runs(two, runs_with(50, 5, 2)), three, kE2e, {});
    EXPECT_EQ(tied.winner, "");
    EXPECT_THAT(tied.sentence, HasSubstr("fast has a better E2E mean than slow"));
    EXPECT_THAT(tied.sentence, HasSubstr("; faster (90.0 ms) cannot be distinguished from it, so no winner is named"));
}

// Its mean is the best by one repeat alone.
TEST(Conclusion, NamesTheVariantThatIsShownToBeBetterBesideOneWhoseMeanIsLower) {
    auto steady = runs_with(50, 8, 1), varying = runs_with(70, 8, 2);
    for (size_t repeat = 0; repeat < varying.size(); ++repeat)
        for (RequestRecord& r : varying[repeat].requests)
            r.finish_ns = repeat < 4 ? r.arrival_ns + 10 * kMs : r.finish_ns + 60 * kMs;
    const std::vector<Contestant> three{{"slow", {}}, {"steady", {}}, {"varying", {}}};
    const Conclusion c = conclude(all_runs(all_runs(runs_with(70, 8, 0), steady), varying), three, kE2e, {});
    ASSERT_EQ(difference_of(c.results[1].comparison, "e2e_mean").verdict, Verdict::kBetter);
    ASSERT_EQ(difference_of(c.results[2].comparison, "e2e_mean").verdict, Verdict::kNoDifference);
    ASSERT_LT(value_of(c.results[2].metrics, "e2e_mean"), value_of(c.results[1].metrics, "e2e_mean"));
    EXPECT_EQ(c.winner, "");
    EXPECT_TRUE(c.claims);
    EXPECT_THAT(c.sentence, HasSubstr("steady has a better E2E mean than slow: 8"));
    EXPECT_THAT(c.sentence, HasSubstr("; varying (41.2 ms) cannot be distinguished from it, so no winner is named"));
}

// 60 ms in the mean, of repeats that vary so much that p is just below 0.05.
std::vector<RunRecord> hardly_quicker(size_t variant) {
    auto runs = runs_with(70, 8, variant);
    constexpr std::array<uint64_t, 8> kQuickerMs{95, 2, 65, 2, 50, 0, 60, 40};
    for (size_t repeat = 0; repeat < runs.size(); ++repeat)
        for (RequestRecord& r : runs[repeat].requests) r.finish_ns -= kQuickerMs[repeat] * kMs;
    return runs;
}

// By Holm it is better, as the other one is shown already; its interval, of one of two, contains 0.
TEST(Conclusion, PutsNoVariantFirstWhoseIntervalContains0) {
    const auto runs = all_runs(all_runs(runs_with(70, 8, 0), runs_with(50, 8, 1)), hardly_quicker(2));
    const Conclusion c = conclude(runs, {{"slow", {}}, {"sure", {}}, {"unsure", {}}}, kE2e, {});
    const Difference& d = difference_of(c.results[2].comparison, "e2e_mean");
    ASSERT_EQ(d.verdict, Verdict::kBetter);
    ASSERT_GT(d.p, kAlpha / 2);
    ASSERT_LT(value_of(c.results[2].metrics, "e2e_mean"), value_of(c.results[1].metrics, "e2e_mean"));
    EXPECT_THAT(c.sentence, ::testing::StartsWith("sure has a better E2E mean than slow"));
    EXPECT_THAT(c.sentence, HasSubstr("; unsure (59.5 ms) cannot be distinguished from it, so no winner is named"));
}

TEST(Conclusion, GivesThePOfAVerdictThatNoIntervalShows) {
    const auto runs = all_runs(all_runs(runs_with(70, 8, 0), runs_with(90, 8, 1)), hardly_quicker(2));
    const Conclusion c = conclude(runs, {{"slow", {}}, {"worse", {}}, {"unsure", {}}}, kE2e, {});
    EXPECT_THAT(c.sentence, ::testing::StartsWith("unsure has"));
    EXPECT_THAT(c.sentence, HasSubstr("corrected by Holm)"));
}

// The two best differ by 1 ms on average: more than 0 at 95 % alone, not at the level for a choice among three.
TEST(Conclusion, NamesNoWinnerByAnIntervalThatContains0) {
    auto best = runs_with(50, 8, 1), next = runs_with(50, 8, 2);
    const std::array<int, 8> slower_ms{3, -1, 2, 1, 2, 0, 3, 1};
    for (size_t repeat = 0; repeat < next.size(); ++repeat)
        for (RequestRecord& r : next[repeat].requests) r.finish_ns += slower_ms[repeat] * 1'000'000;
    const std::vector<Contestant> three{{"slow", {}}, {"best", {}}, {"next", {}}};
    const Conclusion c = conclude(all_runs(all_runs(runs_with(70, 8, 0), best), next), three, kE2e, {});
    EXPECT_EQ(c.winner, "");
    EXPECT_THAT(c.sentence, HasSubstr("; next (91.0 ms) cannot be distinguished from it, so no winner is named"));
}

TEST(Conclusion, CountsTheSameRepeatsForEveryVariant) {
    auto slow = runs_with(70, 6, 0), fast = runs_with(50, 6, 1);
    fast[5].end = RunEnd::kInterrupted;
    for (RequestRecord& r : slow[5].requests) r.finish_ns += 60'000'000'000;
    const Conclusion c = conclude(all_runs(slow, fast), {{"slow", {}}, {"fast", {}}}, kE2e, {});
    EXPECT_NEAR(value_of(c.results[0].metrics, "e2e_mean"), 110, 0.05);
    EXPECT_NEAR(difference_of(c.results[1].comparison, "e2e_mean").value, -20, 0.05);
}

TEST(Conclusion, WithoutARepeatThatAllHaveShowsWhatEachHas) {
    auto slow = runs_with(70, 1, 0), fast = runs_with(50, 1, 1);
    slow[0].end = RunEnd::kInterrupted;
    const Conclusion c = conclude(all_runs(slow, fast), {{"slow", {}}, {"fast", {}}}, kE2e, {});
    EXPECT_TRUE(std::isnan(value_of(c.results[0].metrics, "e2e_mean")));
    EXPECT_DOUBLE_EQ(value_of(c.results[1].metrics, "e2e_mean"), 88);
}

TEST(Conclusion, SaysWhereNoRepeatIsWhole) {
    auto base = runs_with(70, 6, 0), even = runs_with(50, 6, 1), odd = runs_with(60, 6, 2), never = runs_with(60, 6, 3);
    for (uint32_t r = 0; r < 6; ++r) {
        (r % 2 ? even : odd)[r].faults.push_back("it crashed");
        never[r].faults.push_back("it crashed");
    }
    const std::vector<Contestant> four{{"base", {}}, {"even", {}}, {"odd", {}}, {"never", {}}};
    const auto note = ::testing::Contains(HasSubstr("no repeat has a valid run of every variant"));
    const auto whole = conclude(all_runs(all_runs(base, even), all_runs(base, never)), four, kE2e, {});
    EXPECT_THAT(whole.notices, ::testing::Not(note)) << "the one that never runs takes none from the others";
    EXPECT_EQ(whole.results[1].comparison.repeats, 3u);
    EXPECT_EQ(whole.results[3].comparison.repeats, 0u);
    EXPECT_THAT(conclude(all_runs(all_runs(base, even), all_runs(odd, never)), four, kE2e, {}).notices, note);
}

TEST(Conclusion, NamesNoWinnerWhereConfigurationsDifferInMoreThanDeclared) {
    const Conclusion c = conclude(all_runs(runs_with(70, 5, 0), runs_with(50, 5, 1)),
                                  {{"slow", {}}, {"fast", {"automatic.threads"}}}, kE2e, {});
    EXPECT_EQ(c.winner, "");
    EXPECT_THAT(c.sentence, HasSubstr("differ in more than the declared factors"));
    EXPECT_THAT(c.notices,
                ::testing::ElementsAre(
                    HasSubstr("variant 'fast' differs from the baseline in more than it declares: automatic.threads")));
}

TEST(Conclusion, NamesNoWinnerWhereARunIsInvalidAndSaysWhich) {
    auto fast = runs_with(50, 6, 1);
    fast[2].faults.push_back("3 sampler faults");
    const Conclusion c = conclude(all_runs(runs_with(70, 6, 0), fast), {{"slow", {}}, {"fast", {}}}, kE2e, {});
    EXPECT_EQ(c.winner, "");
    EXPECT_THAT(c.notices, ::testing::ElementsAre("run 9 (fast, repeat 3) is invalid: 3 sampler faults"));
    EXPECT_EQ(c.results[1].comparison.independent, 5u); // the invalid one is left out, on both sides
}

TEST(Conclusion, NamesNoWinnerOnFewRepeatsOrWithoutADifference) {
    EXPECT_THAT(
        conclude(all_runs(runs_with(70, 2, 0), runs_with(50, 2, 1)), {{"slow", {}}, {"fast", {}}}, kE2e, {}).sentence,
        HasSubstr("fewer than 5 independent repeats"));
    EXPECT_THAT(conclude(all_runs(runs_with(50, 5, 0), runs_with(50, 5, 1)), {{"a", {}}, {"b", {}}}, kE2e, {}).sentence,
                HasSubstr("no variant is shown to have a better E2E mean than a"));
}

TEST(Conclusion, CountsIdenticalRepeatsOnceAndSaysSo) {
    auto slow = runs_with(70, 8, 0), fast = runs_with(50, 8, 1);
    for (uint32_t r = 0; r < 8; ++r) {
        slow[r].requests = slow[0].requests;
        fast[r].requests = fast[0].requests;
    }
    const Conclusion c = conclude(all_runs(slow, fast), {{"slow", {}}, {"fast", {}}}, kE2e, {});
    EXPECT_EQ(c.winner, "");
    EXPECT_THAT(c.sentence, HasSubstr("fewer than 5 independent repeats"));
    EXPECT_THAT(c.notices, ::testing::ElementsAre(HasSubstr("repeats 2, 3, 4, 5, 6, 7, 8 gave the")));
    EXPECT_EQ(c.results[1].comparison.independent, 1u);
}

TEST(Conclusion, NamesAVariantThatChangedNothing) {
    const Conclusion c =
        conclude(all_runs(runs_with(50, 6, 0), runs_with(50, 6, 1)), {{"a", {}}, {"b", {}}}, kE2e, {});
    EXPECT_THAT(c.notices, ::testing::ElementsAre(HasSubstr("variant 'b' had exactly the same times as the baseline")));
}

// One reason is enough, also where times differ.
TEST(Conclusion, NamesAVariantThatIsTheBaselineOnceMore) {
    const std::vector<Contestant> two{{"a", {}}, {.name = "b", .undeclared = {}, .same_configuration = true}};
    for (const uint64_t first_ms : {50, 60})
        EXPECT_THAT(conclude(all_runs(runs_with(50, 6, 0), runs_with(first_ms, 6, 1)), two, kE2e, {}).notices,
                    ::testing::ElementsAre("variant 'b' has the same configuration as the baseline: differences "
                                           "between the two are noise"));
}

TEST(Conclusion, SaysWhatElseIsShownOfTheOtherPrimaryMetrics) {
    const Question q = question_of(0, {"e2e_mean", "ttft_p50", "output_throughput"});
    const Conclusion c =
        conclude(all_runs(runs_with(70, 8, 0), runs_with(50, 8, 1)), {{"slow", {}}, {"fast", {}}}, q, {});
    EXPECT_THAT(c.sentence, HasSubstr("; compared with slow it is also better in TTFT p50"));
    const Question by_rate = question_of(0, {"output_throughput", "ttft_p50"});
    EXPECT_THAT(conclude(all_runs(runs_with(70, 8, 0), runs_with(50, 8, 1)), {{"slow", {}}, {"fast", {}}}, by_rate, {})
                    .sentence,
                HasSubstr("no variant is shown to have a better output throughput than slow; fast is better in TTFT"));
    EXPECT_THAT(
        conclude(all_runs(runs_with(50, 8, 0), runs_with(70, 8, 1)), {{"fast", {}}, {"slow", {}}}, q, {}).sentence,
        HasSubstr("slow has a worse E2E mean than fast: 110 ms against 89.6 ms (difference 20"));
}

TEST(Shown, GivesNumbersAReadablePrecision) {
    EXPECT_EQ(shown(1234567.8), "1,234,568");
    EXPECT_EQ(shown(-1234), "-1,234");
    EXPECT_EQ(shown(123.4), "123");
    EXPECT_EQ(shown(12.34), "12.3");
    EXPECT_EQ(shown(1.234), "1.23");
    EXPECT_EQ(shown(0.01234), "0.012");
    EXPECT_EQ(shown(0), "0");
    EXPECT_EQ(shown(kNoValue), "–");
}

}  // namespace
}  // namespace patchbay::experiment::conclusion_test
