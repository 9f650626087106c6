#include "experiment/overload.hpp"

#include <algorithm>

#include "base/line_fit.hpp"
#include "experiment/inference.hpp"

namespace patchbay::experiment {
namespace {

constexpr double kSecondsPerNs = 1e-9;
constexpr double kGrowth = 0.05;
constexpr size_t kRequests = 10;

double mean_of(const std::vector<double>& values) { return estimate_of(values).mean; }

}  // namespace

std::optional<Load> load_of(const RunRecord& run, const TimeSpan& span) {
    std::vector<double> arrivals, waits;
    for (const RequestRecord& r : run.requests) {
        if (!r.completed() || r.token_ns.empty() || !span.has(r.arrival_ns)) continue;
        arrivals.push_back(static_cast<double>(r.arrival_ns) * kSecondsPerNs);
        waits.push_back(static_cast<double>(r.token_ns.front() - r.arrival_ns) * kSecondsPerNs);
    }
    if (arrivals.size() < kRequests || run.duration_ns == 0 || span.seconds() == 0) return std::nullopt;
    const auto [first, last] = std::minmax_element(arrivals.begin(), arrivals.end());
    if (*first == *last) return std::nullopt;
    Load out;
    const auto n = static_cast<double>(arrivals.size());
    out.offered = (n - 1) / (*last - *first);
    const auto ended = [&](const RequestRecord& r) { return r.completed() && span.has(r.finish_ns); };
    out.served = static_cast<double>(std::ranges::count_if(run.requests, ended)) / span.seconds();
    LineFit waits_by_arrival; // in which all points weigh alike
    for (size_t i = 0; i < arrivals.size(); ++i)
        waits_by_arrival.add(arrivals[i] - *first, waits[i], 1 / static_cast<double>(i + 1));
    out.growth = waits_by_arrival.slope();
    return out;
}

std::vector<std::string> overload_notices(const std::vector<RunSummary>& runs,
                                          const std::vector<Contestant>& contestants) {
    std::vector<std::string> notices;
    for (size_t v = 0; v < contestants.size(); ++v) {
        std::vector<double> growths, offered, served;
        for (const RunSummary& run : runs) {
            const auto load = run.variant == v && run.counts() && !run.rate ? run.load : std::nullopt;
            if (!load) continue;
            growths.push_back(load->growth);
            offered.push_back(load->offered);
            served.push_back(load->served);
        }
        const Estimate growth = estimate_of(growths);
        if (!(growth.mean >= kGrowth && interval_of(growth, kAlpha).low > 0)) continue;
        notices.push_back("variant '" + contestants[v].name + "' was overloaded: " + shown(mean_of(offered)) +
                          " requests per second arrived, " + shown(mean_of(served)) +
                          " were served, and the time to first token grew by " + shown(growth.mean) +
                          " s with each second; how long its latencies are depends on how long the run is");
    }
    return notices;
}

}  // namespace patchbay::experiment
