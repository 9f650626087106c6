// What independent repeats say about a mean: intervals, tests, corrections for many tests. Pure functions; quantiles of
// distributions are Boost.Math's. docs/decisions/0052 has the reasons.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace patchbay::experiment {

inline constexpr double kAlpha = 0.05; // intervals hold in 95 of 100 cases, verdicts are false in 5
inline constexpr double kPower = 0.9;  // of the smallest detectable difference

struct Interval {
    double low, high;
};

// An estimated mean. freedom: degrees of it that `error` was estimated with; below 1 nothing is known of the error.
struct Estimate {
    double mean, error; // error: standard error of the mean
    double freedom;
};

// Of values that are independent of one another.
Estimate estimate_of(std::span<const double> values);
// Of values that overlap: the error is that of as many values as are independent.
Estimate estimate_of(std::span<const double> values, uint32_t independent);
// Where the number of values was chosen by the spread of the first ones (Stein 1945): the spread is that of the first,
// which does not depend on any mean, so that tests keep their level; or that of all where this is wider, as the first
// of a heavy-tailed kind often miss its tails.
Estimate two_stage_estimate(std::span<const double> values, uint32_t first);

Interval interval_of(const Estimate&, double alpha); // Student's t
// That the mean is 0, two-sided. Values that are all the same leave t without a scale: then the share of sign patterns
// that are as one-sided, 2^-(n - 1).
double p_value(const Estimate&);
// The smallest mean that a two-sided test at `alpha` finds in `power` of all cases, in standard errors.
double detectable_errors(double freedom, double alpha, double power);
// How much too small the deviation of few normal values is on average: its mean over the true one ("c4").
double mean_deviation(double freedom);
// How many values in all make a two_stage_estimate() find a mean of this size in `power` of all cases: the first ones'
// deviation and number decide (Stein).
double values_needed(double deviation, uint32_t first, double size, double alpha, double power);

// Holm's step-down correction: reject where it is at most alpha, and the chance of any false rejection is at most that.
// NaN stays NaN and is not counted.
std::vector<double> holm(std::span<const double> p);

// Of a share, from counts (Clopper and Pearson).
Interval share_interval(uint64_t successes, uint64_t trials, double alpha);

}  // namespace patchbay::experiment
