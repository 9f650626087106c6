// The bars that verdicts and conclusions are held to. PATCHBAY_LEVELS: experiments of each kind, by default few.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>

#include "experiment/capacity.hpp"
#include "experiment/disturbance.hpp"
#include "made_up.hpp"

namespace patchbay::experiment::levels::levels_test {
namespace {

constexpr double kBar = 0.06;
constexpr uint32_t kFew = 100;

uint32_t experiments() {
    const char* given = std::getenv("PATCHBAY_LEVELS");
    return given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : kFew;
}

uint32_t of_power() { return std::max(1000u, experiments()); }

struct Rate {
    uint64_t hits = 0, of = 0;
    void add(bool hit) {
        hits += hit;
        of += 1;
    }
    double value() const { return static_cast<double>(hits) / static_cast<double>(of); }
    // Of few experiments chance may exceed the bar: then only what is sure counts. Variants of one experiment share its
    // baseline, so the experiment is the unit.
    double sure() const { return experiments() >= 4000 ? value() : low(0.01); }
    // Of metrics there are many to be the worst of: by chance alone the worst of 30 reaches 6 % in 4,000 experiments.
    double sure_of_worst() const { return low(0.01 / static_cast<double>(metric_infos().size())); }
    double low(double alpha) const {
        const auto mean_hits = static_cast<uint64_t>(value() * experiments() + 0.5);
        return share_interval(mean_hits, experiments(), alpha).low;
    }
};

struct Rates { // of false statements
    std::vector<Rate> intervals = std::vector<Rate>(metric_infos().size()), verdicts = intervals;
    Rate family, sentence;

    template <class Of>
    static double worst(const std::vector<Rate>& rates, Of of) {
        double out = 0;
        for (const Rate& r : rates)
            if (r.of > 0) out = std::max(out, of(r));
        return out;
    }
    static Rate all(const std::vector<Rate>& rates) { // metrics together
        Rate out;
        for (const Rate& r : rates) {
            out.hits += r.hits;
            out.of += r.of;
        }
        return out;
    }
};

std::vector<std::string> names(size_t variants) {
    std::vector<std::string> out;
    for (size_t v = 0; v < variants; ++v) out.push_back("v" + std::to_string(v));
    return out;
}

bool says_something(const Claim& claim, const Question& q) {
    return claim.sentence != "no variant is shown to have a better " + metric_infos()[q.primary[0]].label + " than v0";
}

void count(const Measured& m, const Question& q, Rates& rates) {
    const auto results = judge(m, q);
    bool any = false;
    for (size_t v = 1; v < results.size(); ++v)
        for (size_t i = 0; i < metric_infos().size(); ++i) {
            const Difference& d = results[v].comparison.metrics[i];
            if (!std::isnan(d.low)) rates.intervals[i].add(d.low > 0 || d.high < 0);
            if (d.verdict == Verdict::kExploratory || d.verdict == Verdict::kNone) continue;
            const bool verdict = d.verdict != Verdict::kNoDifference;
            rates.verdicts[i].add(verdict);
            any |= verdict;
        }
    rates.family.add(any);
    rates.sentence.add(says_something(claim_of(m, results, names(results.size()), q), q));
}

void hold(const Rates& r, const std::string& what) {
    const auto worst = [](const std::vector<Rate>& rates) {
        return 100 * Rates::worst(rates, [](const Rate& of_metric) { return of_metric.value(); });
    };
    std::printf("%-36s interval %4.1f %% of all metrics, %4.1f %% of the worst, verdict %4.1f %% of the worst; "
                "any verdict %4.1f %%, sentence %4.1f %%\n",
                what.c_str(), 100 * Rates::all(r.intervals).value(), worst(r.intervals), worst(r.verdicts),
                100 * r.family.value(), 100 * r.sentence.value());
    EXPECT_LE(Rates::all(r.intervals).sure(), kBar) << what;
    EXPECT_LE(Rates::worst(r.intervals, std::mem_fn(&Rate::sure_of_worst)), kBar) << what;
    EXPECT_LE(Rates::worst(r.verdicts, std::mem_fn(&Rate::sure_of_worst)), kBar) << what;
    EXPECT_LE(r.family.sure(), kBar) << what;
    EXPECT_LE(r.sentence.sure(), kBar) << what;
}

TEST(Levels, OfVariantsThatAreTheSameFewVerdictsAndSentencesAreFalse) {
    for (const Noise noise : kNoises)
        for (const size_t variants : {2, 6, 16})
            for (const uint32_t repeats : {5, 10, 20}) {
                Rates rates;
                for (uint32_t i = 0; i < experiments(); ++i)
                    count(made_up({.noise = noise, .variants = variants, .repeats = repeats}, i), question(), rates);
                hold(rates, std::string(name_of(noise)) + ", " + std::to_string(variants) + " variants, " +
                                std::to_string(repeats) + " repeats");
            }
}

constexpr uint32_t kFirst = 10;

Measured cut(Measured m, uint32_t repeats) {
    for (auto& variant : m.values)
        for (auto& metric : variant) metric.resize(repeats);
    return m;
}

// As `repeats: auto` does: as many as the first ones show to be needed, no more than the plan has.
Measured of_two_stages(const Plan& plan, uint64_t seed, double effect, Question& q) {
    const Measured all = made_up(plan, seed);
    const double needed = repeats_needed(cut(all, kFirst), q, effect).repeats;
    const auto repeats = static_cast<uint32_t>(std::min<double>(needed, plan.repeats));
    q.first_stage.reset();
    if (repeats > kFirst) q.first_stage = kFirst;
    return cut(all, repeats);
}

TEST(Levels, HoldWhereTheFirstRepeatsDecideHowManyThereAre) {
    for (const Noise noise : kNoises)
        for (const size_t variants : {2, 6})
            for (const double effect : {0.05, 0.02}) {
                Rates rates;
                Question q = question();
                double repeats = 0;
                for (uint32_t i = 0; i < experiments(); ++i) {
                    const Plan plan{.noise = noise, .variants = variants, .repeats = 60};
                    const Measured m = of_two_stages(plan, i, effect, q);
                    repeats += static_cast<double>(m.values[0][0].size()) / experiments();
                    count(m, q, rates);
                }
                std::printf("%.0f repeats on average: ", repeats);
                hold(rates, std::string(name_of(noise)) + ", " + std::to_string(variants) + " variants, auto");
            }
}

TEST(Power, OfRepeatsThatAreAddedIsWhatWasAskedFor) {
    for (const double effect : {0.05, 0.03}) {
        Rate found;
        Question q = question();
        const size_t metric = q.primary[1];
        double repeats = 0;
        for (uint32_t i = 0; i < of_power(); ++i) {
            const Plan plan{.repeats = 200, .effects = {1, 1 + effect}, .affected = metric};
            const Measured m = of_two_stages(plan, i, effect, q);
            repeats += static_cast<double>(m.values[0][0].size()) / of_power();
            found.add(judge(m, q)[1].comparison.metrics[metric].verdict == Verdict::kWorse);
        }
        std::printf("auto, %.0f %%: found in %.1f %%, after %.1f repeats on average\n", 100 * effect,
                    100 * found.value(), repeats);
        EXPECT_GE(found.value(), 0.9);
    }
}

TEST(Levels, HoldForMetricsOfRequestsToo) {
    Rates rates;
    const Question q = question();
    for (uint32_t i = 0; i < experiments(); ++i)
        count(measured(made_up_runs(2, 10, i), 2), q, rates);
    hold(rates, "requests, 2 variants, 10 repeats");
}

TEST(Levels, OfTwoEqualWinnersNeitherIsCalledTheBest) {
    for (const size_t variants : {3, 6, 16}) {
        Plan plan{.noise = Noise::kNormal, .variants = variants};
        plan.effects.assign(variants, 1.0);
        plan.effects[1] = plan.effects[2] = 1.1;
        Rate best;
        for (uint32_t i = 0; i < experiments(); ++i) {
            const Measured m = made_up(plan, i);
            best.add(!claim_of(m, judge(m, question()), names(variants), question()).winner.empty());
        }
        std::printf("two equal winners of %zu: one of them called the best in %.1f %%\n", variants, 100 * best.value());
        EXPECT_LE(best.sure(), kBar) << variants;
    }
}

// Each repeat has a capacity of its own; a run at a rate shows it through the luck of 200 requests.
RunSummary run_at(const RunSlot& slot, double capacity, std::mt19937_64& random) {
    constexpr int kRequests = 200;
    RunSummary run;
    run.variant = slot.variant;
    run.repeat = slot.repeat;
    run.rate = slot.rate;
    const double share = 1 / (1 + std::exp(8 * std::log(*slot.rate / capacity)) / 9); // 0.9 at the capacity
    run.objective = std::binomial_distribution<int>(kRequests, share)(random) / double{kRequests};
    return run;
}

TEST(Levels, OfCapacitiesFoundByBisectionHold) {
    for (const double ratio : {1.0, 1.3}) {
        Rate missed;
        for (uint32_t i = 0; i < experiments(); ++i) {
            std::mt19937_64 random(i);
            std::normal_distribution<double> normal;
            std::vector<double> workload;
            for (int r = 0; r < 10; ++r) workload.push_back(10 * std::exp(0.15 * normal(random)));
            const RunRound round = [&](const std::vector<RunSlot>& slots) -> Result<std::vector<RunSummary>> {
                std::vector<RunSummary> out;
                for (const RunSlot& s : slots)
                    out.push_back(run_at(s, workload[s.repeat] * (s.variant == 1 ? ratio : 1), random));
                return out;
            };
            const CapacitySearch search{.slo = {}, .share = 0.9, .lowest = 1, .highest = 100, .precision = 0.05};
            const auto found = find_capacities(search, {"a", "b"}, 10, i, round);
            Measured m;
            m.values.assign(2, std::vector(metric_infos().size(), std::vector<double>(10, kNoValue)));
            const size_t metric = *metric_named("capacity");
            for (size_t v = 0; v < 2; ++v) m.values[v][metric] = found->found[v];
            Question q = question();
            q.primary = {metric};
            const auto results = judge(m, q);
            const Difference& d = results[1].comparison.metrics[metric];
            const double truth = results[0].metrics[metric] * (ratio - 1);
            missed.add(d.low > truth || d.high < truth);
        }
        std::printf("capacities in the ratio %.1f: the interval misses it in %.1f %%\n", ratio, 100 * missed.value());
        EXPECT_LE(missed.sure(), kBar) << ratio;
    }
}

// The attempt that counts is chosen by CPU time, which results follow: the choice is the same for every variant.
TEST(Levels, HoldWhereDisturbedRunsAreRepeated) {
    Rates rates;
    const Disturbance limit;
    for (uint32_t i = 0; i < experiments(); ++i) {
        Measured m = made_up({}, i), again = m; // the same requests, with the noise of another run
        std::mt19937_64 random(i);
        for (auto& variant : again.values)
            for (auto& metric : variant)
                for (double& value : metric) value *= std::exp(0.02 * std::normal_distribution<double>()(random));
        const auto others = [&](Measured& of, size_t v, uint32_t r) { // slows the run by what it takes
            RunSummary run;
            run.others_share = std::exponential_distribution<double>(20)(random);
            for (size_t k = 0; k < of.values[v].size(); ++k) of.values[v][k][r] *= 1 + run.others_share;
            return run;
        };
        for (size_t v = 0; v < m.values.size(); ++v)
            for (uint32_t r = 0; r < 10; ++r) {
                const RunSummary first = others(m, v, r);
                if (!is_disturbed(limit, first) || !second_counts(first, others(again, v, r))) continue;
                for (size_t k = 0; k < m.values[v].size(); ++k) m.values[v][k][r] = again.values[v][k][r];
            }
        count(m, question(), rates);
    }
    hold(rates, "disturbed runs repeated");
}

// A mean that follows from a choice among variants: its interval holds all the same.
TEST(Levels, TheIntervalOfTheSentenceHoldsForTheVariantThatLooksBest) {
    Rate missed;
    const Question q = question();
    for (uint32_t i = 0; i < experiments(); ++i) {
        const Measured m = made_up({.noise = Noise::kNormal, .variants = 16}, i);
        const auto results = judge(m, q);
        size_t best = 1;
        for (size_t v = 2; v < 16; ++v)
            if (results[v].metrics[q.primary[0]] > results[best].metrics[q.primary[0]]) best = v;
        const Difference d = difference_between(m, q, best, 0, q.primary[0], kAlpha / 15);
        missed.add(d.low > 0 || d.high < 0);
    }
    std::printf("interval of the best of 16: misses the truth in %.1f %%\n", 100 * missed.value());
    EXPECT_LE(missed.sure(), kBar);
}

TEST(Power, OfTenRepeatsFindsFivePercentUnderTwoPercentOfNoise) {
    for (const size_t metric : question().primary) {
        Rate found;
        const bool more_is_better = metric_infos()[metric].better == Better::kHigher;
        for (uint32_t i = 0; i < of_power(); ++i) {
            Plan plan{.effects = {1, 1.05}, .affected = metric};
            const auto results = judge(made_up(plan, i), question());
            const Verdict verdict = results[1].comparison.metrics[metric].verdict;
            found.add(verdict == (more_is_better ? Verdict::kBetter : Verdict::kWorse));
        }
        std::printf("5 %% of %s under 2 %% of noise: found in %.1f %%\n", metric_infos()[metric].label.c_str(),
                    100 * found.value());
        EXPECT_GE(found.value(), 0.9) << metric_infos()[metric].label;
    }
}

// What "smallest detectable difference" promises: an effect of that size is found in 9 of 10.
TEST(Power, IsWhatTheSmallestDetectableDifferencePromises) {
    const Question q = question();
    const size_t metric = q.primary[1];
    double sum = 0;
    for (uint32_t i = 0; i < of_power(); ++i) {
        const auto results = judge(made_up({}, i), q);
        sum += results[1].comparison.metrics[metric].detectable / results[0].metrics[metric];
    }
    const double size = sum / of_power();
    Rate found;
    for (uint32_t i = 0; i < of_power(); ++i) {
        const Plan plan{.effects = {1, 1 + size}, .affected = metric};
        found.add(judge(made_up(plan, i), q)[1].comparison.metrics[metric].verdict == Verdict::kWorse);
    }
    std::printf("detectable on average %.2f %%: found in %.1f %%\n", 100 * size, 100 * found.value());
    EXPECT_NEAR(found.value(), 0.9, 0.04);
}

}  // namespace
}  // namespace patchbay::experiment::levels::levels_test
