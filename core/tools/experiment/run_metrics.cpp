#include "experiment/run_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "experiment/step_numbers.hpp"

namespace patchbay::experiment {
namespace {

constexpr double kMsPerNs = 1e-6, kSecondsPerNs = 1e-9;

double mean_of(const std::vector<double>& values) {
    return values.empty() ? kNoValue
                          : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void append_family(std::vector<double>& values, std::vector<double>& out) {
    out.push_back(mean_of(values));
    for (const double q : {0.5, 0.9, 0.99}) out.push_back(quantile(values, q));
}

}  // namespace

double quantile(std::vector<double>& values, double q) {
    if (values.empty()) return kNoValue;
    const double rank = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(rank);
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(below);
    std::nth_element(values.begin(), at, values.end());
    if (at + 1 == values.end()) return *at;
    return std::lerp(*at, *std::min_element(at + 1, values.end()), rank - static_cast<double>(below));
}

std::vector<size_t> default_primary(const Slo& slo) {
    std::vector<size_t> out;
    for (const char* name : {slo.any() ? "goodput_share" : "output_throughput", "ttft_p50", "ttft_p99", "tpot_p50",
                             "tpot_p99", "e2e_p50"})
        out.push_back(*metric_named(name));
    return out;
}

Latencies latencies_of(const RequestRecord& r) {
    Latencies l{kNoValue, kNoValue, static_cast<double>(r.finish_ns - r.arrival_ns) * kMsPerNs};
    if (r.token_ns.empty()) return l;
    l.ttft = static_cast<double>(r.token_ns.front() - r.arrival_ns) * kMsPerNs;
    for (size_t i = 1; i < r.token_ns.size(); ++i)
        l.gaps.push_back(static_cast<double>(r.token_ns[i] - r.token_ns[i - 1]) * kMsPerNs);
    if (r.token_ns.size() > 1)
        l.tpot = static_cast<double>(r.token_ns.back() - r.token_ns.front()) * kMsPerNs /
                 static_cast<double>(r.token_ns.size() - 1);
    const double end = r.others.empty() ? l.e2e : static_cast<double>(r.token_ns.back() - r.arrival_ns) * kMsPerNs;
    l.normalised = end / static_cast<double>(r.token_ns.size());
    return l;
}

bool meets(const Slo& slo, const RequestRecord& r) {
    if (!slo.any() || !r.completed()) return false;
    const Latencies l = latencies_of(r);
    const auto within = [](const std::optional<double>& bound, double value) {
        return !bound || std::isnan(value) || value <= *bound;
    };
    return within(slo.ttft_ms, l.ttft) && within(slo.tpot_ms, l.tpot) && within(slo.e2e_ms, l.e2e);
}

namespace {

TimeSpan span_of(const CountingWindow& window, uint64_t first_ns, uint64_t last_ns) { // arrivals
    const auto span = static_cast<double>(last_ns - first_ns);
    const auto at = [&](const Moment& m) {
        return first_ns + static_cast<uint64_t>(std::llround(m.is_share ? m.value * span : m.value * 1e9));
    };
    return {at(window.from), at(window.until)};
}

}  // namespace

TimeSpan counted_span(const RunRecord& run, const std::optional<CountingWindow>& window) {
    if (!window || run.requests.empty()) return {0, run.duration_ns};
    const auto [first, last] = std::ranges::minmax_element(run.requests, {}, &RequestRecord::arrival_ns);
    TimeSpan span = span_of(*window, first->arrival_ns, last->arrival_ns);
    span.until_ns = std::min(span.until_ns, run.duration_ns); // beyond it nothing happens that rates could count
    return span;
}

TimeSpan planned_span(const Requests& requests, const std::optional<CountingWindow>& window) {
    if (!window || requests.size() == 0) return {};
    uint64_t first = ~uint64_t{0}, last = 0;
    for (uint32_t i = 0; i < requests.size(); ++i) {
        if (requests.follows(i)) return {};
        first = std::min(first, requests.arrival_ns(i));
        last = std::max(last, requests.arrival_ns(i));
    }
    return span_of(*window, first, last);
}

namespace {

struct Totals { // of the requests that count
    uint64_t arrived = 0, prompt = 0, cached = 0, met = 0, preemptions = 0;
    double output = 0, served_prompt = 0, served = 0, served_well = 0; // in the span
    uint64_t first_ns = ~uint64_t{0}, last_ns = 0;                     // arrivals

    void add_rates(const RequestRecord& r, bool good, const TimeSpan& span) {
        const auto in_span = [&](uint64_t at) { return span.has(at); };
        const auto tokens = static_cast<double>(std::ranges::count_if(r.token_ns, in_span));
        // Times are those of the first output, which stand for the others of the request too.
        const double outputs = r.output.empty() ? 1
                                                : static_cast<double>(r.output_tokens()) /
                                                      static_cast<double>(r.output.size());
        output += r.others.empty() ? tokens : tokens * outputs;
        const bool ended = span.has(r.finish_ns);
        served += ended;
        served_well += ended && good;
        if (span.has(r.token_ns.empty() ? r.finish_ns : r.token_ns.front())) served_prompt += r.prompt_tokens;
    }
    double offered() const { // by the gaps between arrivals
        return arrived > 1 && last_ns > first_ns
                   ? static_cast<double>(arrived - 1) / (static_cast<double>(last_ns - first_ns) * kSecondsPerNs)
                   : kNoValue;
    }
};

}  // namespace

std::vector<double> metrics_of(const RunRecord& run, const Slo& slo, const TimeSpan& span,
                               const std::function<bool(const RequestRecord&)>& counts) {
    std::vector<double> ttft, tpot, gaps, e2e, normalised;
    Totals t;
    for (const RequestRecord& r : run.requests) {
        if (counts && !counts(r)) continue;
        const bool good = meets(slo, r);
        if (r.completed()) t.add_rates(r, good, span);
        if (!span.has(r.arrival_ns)) continue;
        t.arrived += 1;
        t.first_ns = std::min(t.first_ns, r.arrival_ns);
        t.last_ns = std::max(t.last_ns, r.arrival_ns);
        if (!r.completed()) continue;
        const Latencies l = latencies_of(r);
        if (!std::isnan(l.ttft)) ttft.push_back(l.ttft);
        if (!std::isnan(l.tpot)) tpot.push_back(l.tpot);
        e2e.push_back(l.e2e);
        if (!std::isnan(l.normalised)) normalised.push_back(l.normalised);
        gaps.insert(gaps.end(), l.gaps.begin(), l.gaps.end());
        t.met += good;
        t.prompt += r.prompt_tokens;
        t.cached += r.cached_tokens;
        t.preemptions += r.preemptions;
    }
    const double seconds = span.seconds();
    const auto rate = [&](double n) { return seconds > 0 ? n / seconds : kNoValue; };
    const bool judged = slo.any() && t.arrived > 0, whole = !counts;
    std::vector<double> out{rate(t.output), rate(t.served_prompt + t.output), rate(t.served), t.offered()};
    for (std::vector<double>* family : {&ttft, &tpot, &gaps, &e2e, &normalised}) append_family(*family, out);
    out.push_back(judged ? 100 * static_cast<double>(t.met) / static_cast<double>(t.arrived) : kNoValue);
    out.push_back(judged ? rate(t.served_well) : kNoValue);
    out.push_back(t.prompt > 0 ? 100 * static_cast<double>(t.cached) / static_cast<double>(t.prompt) : kNoValue);
    out.push_back(static_cast<double>(t.preemptions));
    for (const MetricInfo& info : step_metrics()) {
        const auto at = std::ranges::find(run.numbers, info.name, &NamedNumber::name);
        out.push_back(whole && at != run.numbers.end() ? at->value : kNoValue); // of no class of requests
    }
    out.push_back(kNoValue);
    return out;
}

uint64_t timing_of(const RunRecord& run) {
    uint64_t hash = 0xcbf29ce484222325; // FNV-1a over words
    const auto add = [&](uint64_t word) { hash = (hash ^ word) * 0x100000001b3; };
    for (const RequestRecord& r : run.requests) {
        for (const uint64_t word : {r.arrival_ns, r.first_scheduled_ns, r.finish_ns, uint64_t{r.prompt_tokens},
                                    r.output_tokens(), uint64_t{r.token_ns.size()}})
            add(word);
        for (const uint64_t at : r.token_ns) add(at);
    }
    return hash;
}

}  // namespace patchbay::experiment
