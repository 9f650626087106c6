#include "experiment/inference.hpp"

#include <algorithm>
// Not by long double, with which what these headers compute before main ends the program under Valgrind.
#define BOOST_MATH_PROMOTE_DOUBLE_POLICY false
#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/tools/roots.hpp>
#include <cmath>
#include <limits>
#include <numeric>

namespace patchbay::experiment {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

double mean_of(std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation_of(std::span<const double> values) { // of a sample
    const double mean = mean_of(values);
    double sum = 0;
    for (const double v : values) sum += (v - mean) * (v - mean);
    return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double critical(double freedom, double alpha) {
    return boost::math::quantile(boost::math::complement(boost::math::students_t(freedom), alpha / 2));
}

}  // namespace

Estimate estimate_of(std::span<const double> values) {
    return estimate_of(values, static_cast<uint32_t>(values.size()));
}

Estimate estimate_of(std::span<const double> values, uint32_t independent) {
    if (values.empty()) return {kUndefined, kUndefined, 0};
    const double n = std::min<double>(independent, static_cast<double>(values.size()));
    if (values.size() < 2 || n < 2) return {mean_of(values), kUndefined, 0};
    return {mean_of(values), deviation_of(values) / std::sqrt(n), n - 1};
}

Estimate two_stage_estimate(std::span<const double> values, uint32_t first) {
    if (values.size() <= first) return estimate_of(values);
    const Estimate start = estimate_of(values.first(first)), all = estimate_of(values);
    const double of_first = start.error * std::sqrt(first / static_cast<double>(values.size()));
    return {mean_of(values), std::max(of_first, all.error), start.freedom};
}

Interval interval_of(const Estimate& e, double alpha) {
    if (e.freedom < 1) return {kUndefined, kUndefined};
    const double reach = critical(e.freedom, alpha) * e.error;
    return {e.mean - reach, e.mean + reach};
}

double p_value(const Estimate& e) {
    if (e.freedom < 1) return kUndefined;
    constexpr double kRounding = 1e-12; // of the mean
    if (e.error <= kRounding * std::abs(e.mean)) return e.mean == 0 ? 1 : std::exp2(-e.freedom);
    const double t = std::abs(e.mean) / e.error;
    return 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(e.freedom), t));
}

double detectable_errors(double freedom, double alpha, double power) {
    if (freedom < 1) return kUndefined;
    const double bound = critical(freedom, alpha);
    const auto missing = [&](double mean) { // of the power
        const boost::math::non_central_t_distribution<double> t(freedom, mean);
        return boost::math::cdf(boost::math::complement(t, bound)) + boost::math::cdf(t, -bound) - power;
    };
    double high = bound + 1;
    while (missing(high) < 0) high *= 1.5;
    std::uintmax_t steps = 200;
    const auto [low, up] =
        boost::math::tools::toms748_solve(missing, 0.0, high, boost::math::tools::eps_tolerance<double>(48), steps);
    return (low + up) / 2;
}

double mean_deviation(double freedom) {
    if (freedom < 1) return kUndefined;
    return std::sqrt(2 / freedom) * boost::math::tgamma_delta_ratio((freedom + 1) / 2, -0.5);
}

double values_needed(double deviation, uint32_t first, double size, double alpha, double power) {
    if (first < 2) return kUndefined;
    const double freedom = first - 1.0;
    const double errors = critical(freedom, alpha) + boost::math::quantile(boost::math::students_t(freedom), power);
    return std::max<double>(first, std::ceil(std::pow(errors * deviation / size, 2)));
}

std::vector<double> holm(std::span<const double> p) {
    std::vector<size_t> order;
    for (size_t i = 0; i < p.size(); ++i)
        if (!std::isnan(p[i])) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
    std::vector<double> out(p.size(), kUndefined);
    double highest = 0;
    for (size_t k = 0; k < order.size(); ++k) {
        highest = std::max(highest, std::min(1.0, p[order[k]] * static_cast<double>(order.size() - k)));
        out[order[k]] = highest;
    }
    return out;
}

Interval share_interval(uint64_t successes, uint64_t trials, double alpha) {
    if (trials == 0) return {0, 1};
    using boost::math::beta_distribution;
    const auto k = static_cast<double>(successes), rest = static_cast<double>(trials - successes);
    return {successes == 0 ? 0 : boost::math::quantile(beta_distribution<double>(k, rest + 1), alpha / 2),
            successes == trials
                ? 1
                : boost::math::quantile(boost::math::complement(beta_distribution<double>(k + 1, rest), alpha / 2))};
}

}  // namespace patchbay::experiment
