#include "experiment/run_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

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

const std::vector<MetricInfo>& metric_infos() {
    static const std::vector<MetricInfo> infos = [] {
        std::vector<MetricInfo> all{{"output_throughput", "tok/s", "output throughput", Better::kHigher, true},
                                    {"total_throughput", "tok/s", "total throughput", Better::kHigher, true},
                                    {"request_throughput", "req/s", "request throughput", Better::kHigher, true},
                                    {"offered_rate", "req/s", "offered load", Better::kNeither, true}};
        const std::pair<const char*, const char*> families[] = {
            {"ttft", "TTFT"}, {"tpot", "TPOT"}, {"itl", "ITL"}, {"e2e", "E2E"}, {"normalised", "E2E/token"}};
        for (const auto& [name, label] : families)
            for (const char* of : {"mean", "p50", "p90", "p99"})
                all.push_back(
                    {std::string(name) + "_" + of, "ms", std::string(label) + " " + of, Better::kLower, true});
        all.push_back({"goodput_share", "%", "goodput share", Better::kHigher, false});
        all.push_back({"goodput_rate", "req/s", "goodput", Better::kHigher, true});
        all.push_back({"kv_mean", "%", "KV use mean", Better::kNeither, false});
        all.push_back({"kv_max", "%", "KV use max", Better::kNeither, false});
        all.push_back({"prefix_hit_share", "%", "prefix hits", Better::kHigher, false});
        all.push_back({"preemptions", "per run", "preemptions", Better::kLower, false});
        all.push_back({"capacity", "req/s", "capacity", Better::kHigher, true});
        return all;
    }();
    return infos;
}

std::optional<size_t> metric_named(const std::string& name) {
    for (size_t m = 0; m < metric_infos().size(); ++m)
        if (metric_infos()[m].name == name) return m;
    return std::nullopt;
}

std::vector<size_t> default_primary(const Slo& slo) {
    std::vector<size_t> out;
    for (const char* name : {slo.any() ? "goodput_share" : "output_throughput", "ttft_p50", "ttft_p99", "tpot_p50",
                             "tpot_p99", "e2e_p50"})
        out.push_back(*metric_named(name));
    return out;
}

Latencies latencies_of(const RequestRecord& r) {
    Latencies l{kNoValue, kNoValue, static_cast<double>(r.finish_ns - r.arrival_ns) * kMsPerNs, {}};
    if (r.token_ns.empty()) return l;
    l.ttft = static_cast<double>(r.token_ns.front() - r.arrival_ns) * kMsPerNs;
    for (size_t i = 1; i < r.token_ns.size(); ++i)
        l.gaps.push_back(static_cast<double>(r.token_ns[i] - r.token_ns[i - 1]) * kMsPerNs);
    if (r.token_ns.size() > 1)
        l.tpot = static_cast<double>(r.token_ns.back() - r.token_ns.front()) * kMsPerNs /
                 static_cast<double>(r.token_ns.size() - 1);
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

TimeSpan counted_span(const RunRecord& run, const std::optional<CountingWindow>& window) {
    if (!window || run.requests.empty()) return {0, run.duration_ns};
    const auto by_arrival = [](const RequestRecord& a, const RequestRecord& b) { return a.arrival_ns < b.arrival_ns; };
    const auto [first, last] = std::minmax_element(run.requests.begin(), run.requests.end(), by_arrival);
    const uint64_t begin = first->arrival_ns; // clang 14: lambdas cannot capture structured bindings
    const auto span = static_cast<double>(last->arrival_ns - begin);
    const auto at = [&](const Moment& m) {
        return begin + static_cast<uint64_t>(std::llround(m.is_share ? m.value * span : m.value * 1e9));
    };
    return {at(window->from), at(window->until)};
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
        if (r.output_tokens() > 0) normalised.push_back(l.e2e / static_cast<double>(r.output_tokens()));
        gaps.insert(gaps.end(), l.gaps.begin(), l.gaps.end());
        t.met += good;
        t.prompt += r.prompt_tokens;
        t.cached += r.cached_tokens;
        t.preemptions += r.preemptions;
    }
    const double seconds = static_cast<double>(span.until_ns - span.from_ns) * kSecondsPerNs;
    const auto rate = [&](double n) { return seconds > 0 ? n / seconds : kNoValue; };
    const bool judged = slo.any() && t.arrived > 0, whole = !counts;
    std::vector<double> out{rate(t.output), rate(t.served_prompt + t.output), rate(t.served), t.offered()};
    for (std::vector<double>* family : {&ttft, &tpot, &gaps, &e2e, &normalised}) append_family(*family, out);
    out.push_back(judged ? 100 * static_cast<double>(t.met) / static_cast<double>(t.arrived) : kNoValue);
    out.push_back(judged ? rate(t.served_well) : kNoValue);
    out.push_back(whole && run.kv_mean ? 100 * *run.kv_mean : kNoValue);
    out.push_back(whole && run.kv_max ? 100 * *run.kv_max : kNoValue);
    out.push_back(t.prompt > 0 ? 100 * static_cast<double>(t.cached) / static_cast<double>(t.prompt) : kNoValue);
    out.push_back(static_cast<double>(t.preemptions));
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
