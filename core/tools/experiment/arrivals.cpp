#include "experiment/arrivals.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace patchbay::experiment {
namespace {

// The time by which `expected` arrivals are due, of a rate that changes: the inverse of its integral.
double time_of(const RampArrivals& a, double expected) {
    const double slope = (a.to - a.from) / a.over_s, during = (a.from + a.to) / 2 * a.over_s;
    if (expected >= during) return a.over_s + (expected - during) / a.to;
    // from t + slope t² / 2 = expected, by the form that does not cancel.
    return 2 * expected / (a.from + std::sqrt(a.from * a.from + 2 * slope * expected));
}

double time_of(const OnOffArrivals& a, double expected) {
    const double on = a.rate * a.on_s, off = a.off_rate * a.off_s, periods = std::floor(expected / (on + off));
    const double left = expected - periods * (on + off), start = periods * (a.on_s + a.off_s);
    return left <= on || off <= 0 ? start + left / a.rate : start + a.on_s + (left - on) / a.off_rate;
}

double time_of(const DiurnalArrivals& a, double expected) {
    constexpr double kTurn = 2 * std::numbers::pi;
    const double swing = a.amplitude * a.period_s / kTurn;
    const auto integral = [&](double t) {
        return a.mean_rate * (t - swing * (std::cos(kTurn * (t / a.period_s + a.phase)) - std::cos(kTurn * a.phase)));
    };
    // The integral is within 2 swing of the mean's: bisection between the two.
    double low = std::max(0.0, expected / a.mean_rate - 2 * swing), high = expected / a.mean_rate + 2 * swing;
    for (int i = 0; i < 200 && high - low > 1e-10; ++i) {
        const double middle = (low + high) / 2;
        (integral(middle) < expected ? low : high) = middle;
    }
    return (low + high) / 2;
}

uint64_t ns(double seconds) { return static_cast<uint64_t>(std::llround(seconds * 1e9)); }

struct TimesOf {
    uint32_t count;
    const Draws& draws;
    std::span<const uint64_t> trace;
    std::vector<uint64_t> times{};

    // Gaps of a random process; the first request comes after a gap too.
    template <class Gap>
    void accumulate(Gap&& gap) {
        double at = 0;
        for (uint32_t i = 0; i < count; ++i) times.push_back(ns(at += gap(i)));
    }
    void operator()(const AllAtOnce&) { times.assign(count, 0); }
    void operator()(const DeterministicArrivals& a) {
        for (uint32_t i = 0; i < count; ++i) times.push_back(ns(i / a.rate));
    }
    void operator()(const PoissonArrivals& a) {
        accumulate([&](uint32_t i) { return draws.exponential(Purpose::kArrival, i) / a.rate; });
    }
    void operator()(const GammaArrivals& a) { // mean 1/rate, standard deviation cv/rate
        const double shape = 1 / (a.cv * a.cv);
        accumulate([&](uint32_t i) { return draws.gamma(Purpose::kArrival, i, shape) / (shape * a.rate); });
    }
    void operator()(const BurstArrivals& a) {
        for (uint32_t i = 0; i < count; ++i) times.push_back(ns(i / a.size * a.every_s));
    }
    void operator()(const TraceArrivals& a) {
        const auto seconds = [&](uint32_t i) { return static_cast<double>(trace[i] - trace[0]) * 1e-9; };
        const double all = count > 0 ? seconds(count - 1) : 0;
        const double scale = a.rate > 0 && all > 0 ? (count - 1) / (all * a.rate) : a.time_scale;
        for (uint32_t i = 0; i < count; ++i) times.push_back(ns(seconds(i) * scale));
    }
    // Times at which a Poisson process of rate 1 is to have its arrivals, stretched as the rate changes.
    template <class Rate>
    void stretch(const Rate& rate) {
        double expected = 0;
        for (uint32_t i = 0; i < count; ++i)
            times.push_back(ns(time_of(rate, expected += draws.exponential(Purpose::kArrival, i))));
    }
    void operator()(const RampArrivals& a) { stretch(a); }
    void operator()(const OnOffArrivals& a) { stretch(a); }
    void operator()(const DiurnalArrivals& a) { stretch(a); }
    void operator()(const ClosedLoop& a) { // of the first request of each user; the others follow
        for (uint32_t i = 0; i < count; ++i)
            times.push_back(i < a.users ? ns(draws.seconds(Purpose::kUserThink, i, a.think)) : 0);
    }
};

}  // namespace

std::vector<uint64_t> arrival_times(const Arrivals& arrivals, uint32_t count, const Draws& draws,
                                    std::span<const uint64_t> trace) {
    TimesOf times{count, draws, trace};
    std::visit(times, arrivals);
    return std::move(times.times);
}

}  // namespace patchbay::experiment
