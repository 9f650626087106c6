#include "experiment/counted.hpp"

#include <algorithm>

#include "experiment/conclusion.hpp"
#include "experiment/run_metrics.hpp"

namespace patchbay::experiment {
namespace {

bool arrives_steadily(const VariantSpec& v) {
    const Arrivals& a = v.workload.arrivals;
    return std::holds_alternative<DeterministicArrivals>(a) || std::holds_alternative<PoissonArrivals>(a) ||
           std::holds_alternative<GammaArrivals>(a) || std::holds_alternative<TraceArrivals>(a);
}

std::string why_all_of(const WorkloadSource::Plan& plan) {
    if (plan.size() < kRequestsForWindow)
        return "a run has fewer than " + std::to_string(kRequestsForWindow) + " requests";
    for (uint32_t i = 0; i < plan.size(); ++i)
        if (plan.follows(i)) return "requests wait for one another";
    const TimeSpan whole = planned_span(plan, CountingWindow{}), middle = planned_span(plan, kSteadyWindow);
    if (whole.from_ns == whole.until_ns) return "requests of a run arrive all at once";
    for (uint32_t i = 0; i < plan.size(); ++i)
        if (middle.has(plan.arrival_ns(i))) return "";
    return "nothing arrives in the middle of a run";
}

// Empty: nothing, and the middle is taken.
std::string why_all(const ExperimentSpec& spec, const Workloads& workloads) {
    if (!std::ranges::all_of(spec.variants, arrives_steadily)) return "arrivals are not steady";
    const bool recorded = std::ranges::any_of(
        spec.variants, [](const auto& v) { return std::holds_alternative<TraceArrivals>(v.workload.arrivals); });
    const uint32_t repeats = recorded ? spec.repeats : 1; // drawn times are as steady in each
    for (const WorkloadSource& source : workloads.different())
        for (uint32_t r = 0; r < repeats; ++r)
            if (std::string why = why_all_of(source.plan(spec.seed, r)); !why.empty()) return why;
    return "";
}

}  // namespace

void apply_window_rule(ExperimentSpec& spec, const Workloads& workloads) {
    if (spec.window_by_rule && why_all(spec, workloads).empty()) spec.window = kSteadyWindow;
}

namespace {

// "10.0 % to 90.0 % of the time of arrivals", "10.0 % of the time of arrivals to 2.00 s after the first arrival"
std::string span_text(const CountingWindow& w) {
    const auto at = [](const Moment& m) { return m.is_share ? shown(100 * m.value) + " %" : shown(m.value) + " s"; };
    const auto of = [](const Moment& m) {
        return m.is_share ? " of the time of arrivals" : " after the first arrival";
    };
    const bool alike = w.from.is_share == w.until.is_share;
    return at(w.from) + (alike ? "" : of(w.from)) + " to " + at(w.until) + of(w.until);
}

}  // namespace

std::string counted_text(const ExperimentSpec& spec, const Workloads& workloads) {
    if (!spec.window)
        return std::string("counted: all requests, the start and the end included") +
               (spec.window_by_rule ? " (window: auto; " + why_all(spec, workloads) + ")" : "");
    return "counted: requests that arrive from " + span_text(*spec.window) +
           (spec.window_by_rule ? " (window: auto)" : "");
}

}  // namespace patchbay::experiment
