#include "experiment/pace.hpp"

#include <algorithm>
#include <cmath>

namespace patchbay::experiment {
namespace {

// By the gaps: a trace begins with its first request, other arrivals with a gap.
double mean_rate(const Requests& requests, bool begins_with_gap) {
    uint64_t last = 0;
    uint32_t timed = 0;
    for (uint32_t i = 0; i < requests.size(); ++i) {
        if (requests.follows(i)) continue;
        timed += 1;
        last = std::max(last, requests.arrival_ns(i));
    }
    const uint32_t gaps = timed > 0 && !begins_with_gap ? timed - 1 : timed;
    return last > 0 ? gaps / (static_cast<double>(last) * 1e-9) : 1;
}

}  // namespace

uint64_t PacedRequests::arrival_ns(uint32_t i) const {
    return static_cast<uint64_t>(std::llround(static_cast<double>(given_.arrival_ns(i)) / pace_));
}

PlannedRequest PacedRequests::make(uint32_t i) const {
    PlannedRequest r = given_.make(i);
    if (r.deadline_ns > 0) r.deadline_ns = r.deadline_ns - r.arrival_ns + arrival_ns(i);
    r.arrival_ns = arrival_ns(i);
    return r;
}

double pace_of(const Arrivals& arrivals, const Requests& requests, double rate) {
    const auto given = [&]() -> double {
        if (const auto* a = std::get_if<DeterministicArrivals>(&arrivals)) return a->rate;
        if (const auto* a = std::get_if<PoissonArrivals>(&arrivals)) return a->rate;
        if (const auto* a = std::get_if<GammaArrivals>(&arrivals)) return a->rate;
        if (const auto* a = std::get_if<DiurnalArrivals>(&arrivals)) return a->mean_rate;
        if (const auto* a = std::get_if<BurstArrivals>(&arrivals)) return a->size / a->every_s;
        return mean_rate(requests, !std::holds_alternative<TraceArrivals>(arrivals));
    }();
    return rate / given;
}

}  // namespace patchbay::experiment
