// What is drawn against its distribution, worked out here by other means: Kolmogorov and Smirnov for what is
// continuous, chi-square for what is counted. Each bound is passed by one sample in 1,000; the seeds are fixed.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "experiment/arrivals.hpp"
#include "experiment/prompts.hpp"
#include "experiment/sessions.hpp"

namespace patchbay::experiment::distributions_test {
namespace {

using Cdf = std::function<double(double)>;

// sqrt(n) times the largest distance from the distribution.
double ks(std::vector<double> sample, const Cdf& cdf) {
    std::sort(sample.begin(), sample.end());
    const auto n = static_cast<double>(sample.size());
    double max_distance = 0;
    for (size_t i = 0; i < sample.size(); ++i) {
        const double f = cdf(sample[i]);
        max_distance = std::max({max_distance, f - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - f});
    }
    return max_distance * std::sqrt(n);
}
constexpr double kKsBound = 1.95; // exceeded by 1 sample in 1,000

// Of counts against shares; the bound by Wilson and Hilferty.
void expect_shares(const std::vector<double>& counts, const std::vector<double>& shares) {
    ASSERT_EQ(counts.size(), shares.size());
    const double n = std::accumulate(counts.begin(), counts.end(), 0.0);
    double sum = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
        ASSERT_GT(n * shares[i], 5) << "too few to expect of " << i;
        sum += std::pow(counts[i] - n * shares[i], 2) / (n * shares[i]);
    }
    const auto df = static_cast<double>(counts.size() - 1);
    EXPECT_LT(sum, df * std::pow(1 - 2 / (9 * df) + 3.09 * std::sqrt(2 / (9 * df)), 3));
}

// Arrivals of a process whose rate changes are, given their number within a time, a sample of the rate's shape: its
// integral, by the midpoint rule.
void expect_shape(const Arrivals& process, const std::function<double(double)>& rate, double until_s, uint32_t count) {
    const auto times = arrival_times(process, count, Draws(11, 0), {});
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
    std::vector<double> within;
    for (const uint64_t t : times)
        if (static_cast<double>(t) * 1e-9 < until_s) within.push_back(static_cast<double>(t) * 1e-9);
    ASSERT_LT(within.size(), times.size()) << "more arrivals would come within this time";
    constexpr int kSteps = 200'000;
    std::vector<double> integral{0};
    for (int i = 0; i < kSteps; ++i)
        integral.push_back(integral.back() + rate((i + 0.5) * until_s / kSteps) * until_s / kSteps);
    const double all = integral.back();
    EXPECT_NEAR(static_cast<double>(within.size()), all, 3.3 * std::sqrt(all)) << "the number, which is Poisson's";
    EXPECT_LT(ks(within,
                 [&](double t) {
                     const double at = t / until_s * kSteps;
                     const auto i = std::min(static_cast<size_t>(at), integral.size() - 2);
                     return std::lerp(integral[i], integral[i + 1], at - static_cast<double>(i)) / all;
                 }),
              kKsBound);
}

TEST(Distributions, ArrivalsOfARampFollowItsRateUpAndDown) {
    const auto ramp = [](double from, double to, double over) {
        return [=](double t) { return t < over ? from + (to - from) * t / over : to; };
    };
    expect_shape(RampArrivals{1, 20, 300}, ramp(1, 20, 300), 400, 6000);
    expect_shape(RampArrivals{20, 1, 300}, ramp(20, 1, 300), 400, 4000);
    expect_shape(RampArrivals{5, 5, 300}, ramp(5, 5, 300), 600, 4000);
}

TEST(Distributions, ArrivalsOfOnAndOffComeWhileItIsOn) {
    const auto rate = [](double off) { return [=](double t) { return std::fmod(t, 30) < 10 ? 8.0 : off; }; };
    expect_shape(OnOffArrivals{8, 10, 20, 0}, rate(0), 1500, 5000);
    expect_shape(OnOffArrivals{8, 10, 20, 1.5}, rate(1.5), 1200, 6000);
    for (const uint64_t t : arrival_times(OnOffArrivals{8, 10, 20, 0}, 2000, Draws(1, 0), {}))
        EXPECT_LT(std::fmod(static_cast<double>(t) * 1e-9, 30), 10);
}

TEST(Distributions, ArrivalsOfADayFollowTheSine) {
    constexpr double kTurn = 6.283185307179586;
    const auto rate = [](double phase) {
        return [=](double t) { return 10 * (1 + 0.8 * std::sin(kTurn * (t / 200 + phase))); };
    };
    expect_shape(DiurnalArrivals{10, 0.8, 200, 0}, rate(0), 500, 7000);
    expect_shape(DiurnalArrivals{10, 0.8, 200, 0.75}, rate(0.75), 500, 7000);
    const auto full = [](double t) { return 10 * (1 + std::sin(kTurn * t / 200)); };
    expect_shape(DiurnalArrivals{10, 1, 200, 0}, full, 500, 7000);
}

TEST(Distributions, GapsOfPoissonAreExponential) {
    const auto times = arrival_times(PoissonArrivals{4}, 5000, Draws(3, 0), {});
    std::vector<double> gaps{static_cast<double>(times[0]) * 1e-9};
    for (size_t i = 1; i < times.size(); ++i) gaps.push_back(static_cast<double>(times[i] - times[i - 1]) * 1e-9);
    EXPECT_LT(ks(gaps, [](double x) { return 1 - std::exp(-4 * x); }), kKsBound);
}

TEST(Distributions, TimesOfThinkingAreAsDeclared) {
    const auto sample = [](const Duration& duration) {
        std::vector<double> out;
        for (uint64_t i = 0; i < 5000; ++i) out.push_back(Draws(5, 1).seconds(Purpose::kThink, i, duration));
        return out;
    };
    EXPECT_LT(ks(sample(ExponentialTime{3}), [](double x) { return 1 - std::exp(-x / 3); }), kKsBound);
    EXPECT_LT(ks(sample(UniformTime{2, 6}), [](double x) { return std::clamp((x - 2) / 4, 0.0, 1.0); }), kKsBound);
    const double sigma = std::sqrt(std::log(1 + 0.5 * 0.5)), mu = std::log(3) - sigma * sigma / 2;
    EXPECT_LT(ks(sample(LognormalTime{3, 0.5}),
                 [&](double x) { return std::erfc((mu - std::log(x)) / (sigma * std::sqrt(2))) / 2; }),
              kKsBound);
    EXPECT_EQ(sample(FixedTime{1.25})[7], 1.25);
}

std::vector<double> zipf_shares(uint32_t n, double exponent) {
    std::vector<double> shares;
    for (uint32_t k = 1; k <= n; ++k) shares.push_back(std::pow(k, -exponent));
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (double& s : shares) s /= sum;
    return shares;
}

TEST(Distributions, SharedPrefixesAreChosenByZipf) {
    for (const double exponent : {0.0, 0.9, 1.5}) {
        WorkloadSpec spec;
        spec.shared_prefixes = {.number = 12, .tokens = FixedLength{6}, .exponent = exponent, .share = 1};
        const auto source = PromptSource::open(spec, nullptr, 5000);
        ASSERT_TRUE(source) << source.error();
        std::map<TokenIds, double> seen;
        const Draws draws(9, 0);
        for (uint32_t s = 0; s < 20'000; ++s) seen[source->prefix(draws, s)] += 1;
        ASSERT_EQ(seen.size(), 12u);
        std::vector<double> counts;
        for (const auto& [prefix, count] : seen) counts.push_back(count);
        std::vector<double> expected = zipf_shares(12, exponent);
        std::sort(counts.rbegin(), counts.rend()); // which is which is not known from outside
        expect_shares(counts, expected);
    }
}

TEST(Distributions, LengthsOfZipfAndOfAListAreAsDeclared) {
    const Draws d(2, 0);
    std::vector<double> zipf(20), listed(3);
    const LengthSource lengths(ZipfLength{1.1, 5, 24}), list(EmpiricalLength{{1, 3, 3, 3, 2, 2}});
    for (uint64_t i = 0; i < 20'000; ++i) {
        zipf[lengths.draw(d, Purpose::kPromptLength, i) - 5] += 1;
        listed[list.draw(d, Purpose::kOutputLength, i) - 1] += 1;
    }
    expect_shares(zipf, zipf_shares(20, 1.1));
    expect_shares(listed, {1 / 6.0, 2 / 6.0, 3 / 6.0});
}

TEST(Distributions, SessionsHaveTheirTurns) {
    WorkloadSpec spec;
    spec.sessions.turns = EmpiricalLength{{1, 1, 4}};
    const auto turns = plan_turns(spec, Draws(4, 0), {}, 20'000);
    std::map<uint32_t, double> of;
    for (const Turn& t : turns) of[t.session] += 1;
    of.erase(turns.back().session); // it may be cut
    std::vector<double> counts(2);
    for (const auto& [session, n] : of) {
        ASSERT_TRUE(n == 1 || n == 4) << n;
        counts[n == 4] += 1;
    }
    expect_shares(counts, {2 / 3.0, 1 / 3.0});
}

}  // namespace
}  // namespace patchbay::experiment::distributions_test
