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
                                    {"request_throughput", "req/s", "request throughput", Better::kHigher, true}};
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

std::vector<double> metrics_of(const RunRecord& run, const Slo& slo) {
    std::vector<double> ttft, tpot, gaps, e2e, normalised;
    uint64_t prompt = 0, cached = 0, output = 0, completed = 0, met = 0, preemptions = 0;
    for (const RequestRecord& r : run.requests) {
        if (!r.completed()) continue;
        const Latencies l = latencies_of(r);
        if (!std::isnan(l.ttft)) ttft.push_back(l.ttft);
        if (!std::isnan(l.tpot)) tpot.push_back(l.tpot);
        e2e.push_back(l.e2e);
        if (r.output_tokens() > 0) normalised.push_back(l.e2e / static_cast<double>(r.output_tokens()));
        gaps.insert(gaps.end(), l.gaps.begin(), l.gaps.end());
        completed += 1;
        met += meets(slo, r);
        prompt += r.prompt_tokens;
        cached += r.cached_tokens;
        output += r.output_tokens();
        preemptions += r.preemptions;
    }
    const double seconds = static_cast<double>(run.duration_ns) * kSecondsPerNs;
    const auto rate = [&](uint64_t n) { return seconds > 0 ? static_cast<double>(n) / seconds : kNoValue; };
    const bool judged = slo.any() && !run.requests.empty();
    std::vector<double> out{rate(output), rate(prompt + output), rate(completed)};
    for (std::vector<double>* family : {&ttft, &tpot, &gaps, &e2e, &normalised}) append_family(*family, out);
    out.push_back(judged ? 100 * static_cast<double>(met) / static_cast<double>(run.requests.size()) : kNoValue);
    out.push_back(judged ? rate(met) : kNoValue);
    out.push_back(run.kv_mean ? 100 * *run.kv_mean : kNoValue);
    out.push_back(run.kv_max ? 100 * *run.kv_max : kNoValue);
    out.push_back(prompt > 0 ? 100 * static_cast<double>(cached) / static_cast<double>(prompt) : kNoValue);
    out.push_back(static_cast<double>(preemptions));
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
