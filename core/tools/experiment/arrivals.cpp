#include "experiment/arrivals.hpp"

#include <cmath>

namespace patchbay::experiment {
namespace {

uint64_t ns(double seconds) { return static_cast<uint64_t>(std::llround(seconds * 1e9)); }

struct TimesOf {
    uint32_t count;
    const Draws& draws;
    std::span<const TraceRow> trace;
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
        for (uint32_t i = 0; i < count; ++i)
            times.push_back(ns(static_cast<double>(trace[i].at_ns - trace[0].at_ns) * 1e-9 * a.time_scale));
    }
};

}  // namespace

std::vector<uint64_t> arrival_times(const Arrivals& arrivals, uint32_t count, const Draws& draws,
                                    std::span<const TraceRow> trace) {
    TimesOf times{count, draws, trace};
    std::visit(times, arrivals);
    return std::move(times.times);
}

}  // namespace patchbay::experiment
