#include "experiment/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "experiment/draws.hpp"

namespace patchbay::experiment {
namespace {

constexpr double kMsPerNs = 1e-6, kSecondsPerNs = 1e-9;

// Metrics of requests are computed over requests pooled from all runs; metrics of runs are a number a run.
enum RunMetric { kOutputRate, kTotalRate, kRequestRate, kGoodputRate, kKvMean, kKvMax, kPreemptions, kRunMetrics };
constexpr size_t kFamilies = 4, kPerFamily = 4; // TTFT, TPOT, ITL, E2E; mean, p50, p90, p99
constexpr size_t kRequestMetrics = kFamilies * kPerFamily + 1; // and the goodput share
constexpr double kQuantiles[] = {0.5, 0.9, 0.99};

struct RequestStats {
    Latencies latencies;
    bool completed, met;
};

struct RunStats {
    std::vector<RequestStats> requests;
    std::vector<double> metrics; // kRunMetrics of them
};

double mean_of(std::span<const double> values) {
    return values.empty() ? kNoValue
                          : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

RunStats stats_of(const RunRecord& run, const Slo& slo) {
    RunStats s;
    uint64_t prompt = 0, output = 0, completed = 0, met = 0, preemptions = 0;
    for (const RequestRecord& r : run.requests) {
        s.requests.push_back({latencies_of(r), r.completed(), meets(slo, r)});
        if (!r.completed()) continue;
        completed += 1;
        met += s.requests.back().met;
        prompt += r.prompt_tokens;
        output += r.output_tokens();
        preemptions += r.preemptions;
    }
    const double seconds = static_cast<double>(run.duration_ns) * kSecondsPerNs;
    const auto rate = [&](uint64_t n) { return seconds > 0 ? static_cast<double>(n) / seconds : kNoValue; };
    s.metrics.assign(kRunMetrics, kNoValue);
    s.metrics[kOutputRate] = rate(output);
    s.metrics[kTotalRate] = rate(prompt + output);
    s.metrics[kRequestRate] = rate(completed);
    s.metrics[kGoodputRate] = slo.any() ? rate(met) : kNoValue;
    s.metrics[kKvMean] = run.kv_mean ? 100 * *run.kv_mean : kNoValue;
    s.metrics[kKvMax] = run.kv_max ? 100 * *run.kv_max : kNoValue;
    s.metrics[kPreemptions] = static_cast<double>(preemptions);
    return s;
}

void append_family(std::vector<double>& values, std::vector<double>& out) {
    out.push_back(mean_of(values));
    for (const double q : kQuantiles) out.push_back(quantile(values, q));
}

// kRequestMetrics numbers over a pool; a request may be in it several times.
std::vector<double> request_metrics(const std::vector<const RequestStats*>& pool, const Slo& slo) {
    std::vector<double> ttft, tpot, gaps, e2e, out;
    size_t met = 0;
    for (const RequestStats* r : pool) {
        met += r->met;
        if (!r->completed) continue;
        if (!std::isnan(r->latencies.ttft)) ttft.push_back(r->latencies.ttft);
        if (!std::isnan(r->latencies.tpot)) tpot.push_back(r->latencies.tpot);
        e2e.push_back(r->latencies.e2e);
        gaps.insert(gaps.end(), r->latencies.gaps.begin(), r->latencies.gaps.end());
    }
    for (std::vector<double>* family : {&ttft, &tpot, &gaps, &e2e}) append_family(*family, out);
    out.push_back(slo.any() && !pool.empty() ? 100 * static_cast<double>(met) / static_cast<double>(pool.size())
                                             : kNoValue);
    return out;
}

// In the order of metric_infos().
std::vector<double> in_shown_order(const std::vector<double>& of_runs, const std::vector<double>& of_requests) {
    std::vector<double> out{of_runs[kOutputRate], of_runs[kTotalRate], of_runs[kRequestRate]};
    out.insert(out.end(), of_requests.begin(), of_requests.end());
    for (const RunMetric m : {kGoodputRate, kKvMean, kKvMax, kPreemptions}) out.push_back(of_runs[m]);
    return out;
}

// Metrics of the runs and requests that `picks` names: (run, requests of it), each possibly several times.
struct Pick {
    size_t run;
    std::vector<uint32_t> requests;
};

std::vector<double> metrics_of(const std::vector<RunStats>& runs, const std::vector<Pick>& picks, const Slo& slo) {
    std::vector<const RequestStats*> pool;
    std::vector<double> means(kRunMetrics, 0);
    for (const Pick& p : picks) {
        for (const uint32_t k : p.requests) pool.push_back(&runs[p.run].requests[k]);
        for (size_t m = 0; m < kRunMetrics; ++m) means[m] += runs[p.run].metrics[m] / static_cast<double>(picks.size());
    }
    if (picks.empty()) means.assign(kRunMetrics, kNoValue);
    return in_shown_order(means, request_metrics(pool, slo));
}

std::vector<Pick> everything(const std::vector<RunStats>& runs) {
    std::vector<Pick> picks;
    for (size_t r = 0; r < runs.size(); ++r) {
        picks.push_back({r, std::vector<uint32_t>(runs[r].requests.size())});
        std::iota(picks.back().requests.begin(), picks.back().requests.end(), 0u);
    }
    return picks;
}

// Repeats first, then requests inside each. One repeat fewer is drawn than there are: with few repeats that makes the
// variance of a mean come out right (Rao and Wu, "Resampling inference with complex survey data", 1988).
std::vector<Pick> resample(const std::vector<RunStats>& runs, const Draws& draws) {
    const size_t repeats = runs.size(), drawn = std::max<size_t>(1, repeats - 1);
    std::vector<Pick> picks;
    uint64_t number = 0;
    for (size_t j = 0; j < drawn; ++j) {
        Pick p{draws.below(Purpose::kBootstrap, number++, repeats), {}};
        const size_t n = runs[p.run].requests.size();
        for (size_t k = 0; k < n; ++k)
            p.requests.push_back(static_cast<uint32_t>(draws.below(Purpose::kBootstrap, number++, n)));
        picks.push_back(std::move(p));
    }
    return picks;
}

uint32_t resamples_for(const std::vector<RunStats>& runs) {
    constexpr double kNumbersAltogether = 2e7; // a second or two of work
    double numbers = 1;
    for (const RunStats& r : runs)
        for (const RequestStats& q : r.requests) numbers += 3 + static_cast<double>(q.latencies.gaps.size());
    return static_cast<uint32_t>(std::clamp(kNumbersAltogether / numbers, 200.0, 2000.0));
}

Verdict verdict_of(const Difference& d, Better better, uint32_t repeats) {
    if (std::isnan(d.value)) return Verdict::kNone;
    if (repeats < kRepeatsForVerdict) return Verdict::kTooFewRepeats;
    if (std::isnan(d.low) || (d.low <= 0 && d.high >= 0)) return Verdict::kNoDifference;
    if (better == Better::kNeither) return Verdict::kDifferent;
    return (d.low > 0) == (better == Better::kHigher) ? Verdict::kBetter : Verdict::kWorse;
}

std::vector<RunStats> stats_of_all(std::span<const RunRecord* const> runs, const Slo& slo) {
    std::vector<RunStats> out;
    for (const RunRecord* run : runs) out.push_back(stats_of(*run, slo));
    return out;
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
        std::vector<MetricInfo> all{{"output_throughput", "tok/s", "output throughput", Better::kHigher},
                                    {"total_throughput", "tok/s", "total throughput", Better::kHigher},
                                    {"request_throughput", "req/s", "request throughput", Better::kHigher}};
        const std::pair<const char*, const char*> families[] = {
            {"ttft", "TTFT"}, {"tpot", "TPOT"}, {"itl", "ITL"}, {"e2e", "E2E"}};
        for (const auto& [name, label] : families)
            for (const char* of : {"mean", "p50", "p90", "p99"})
                all.push_back({std::string(name) + "_" + of, "ms", std::string(label) + " " + of, Better::kLower});
        all.push_back({"goodput_share", "%", "goodput share", Better::kHigher});
        all.push_back({"goodput_rate", "req/s", "goodput", Better::kHigher});
        all.push_back({"kv_mean", "%", "KV use mean", Better::kNeither});
        all.push_back({"kv_max", "%", "KV use max", Better::kNeither});
        all.push_back({"preemptions", "per run", "preemptions", Better::kLower});
        return all;
    }();
    return infos;
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

std::vector<double> summarise(std::span<const RunRecord* const> runs, const Slo& slo) {
    const auto stats = stats_of_all(runs, slo);
    return metrics_of(stats, everything(stats), slo);
}

std::string word_of(Verdict v) {
    switch (v) {
        case Verdict::kBaseline: return "baseline";
        case Verdict::kBetter: return "better";
        case Verdict::kWorse: return "worse";
        case Verdict::kNoDifference: return "no difference shown";
        case Verdict::kDifferent: return "different";
        case Verdict::kTooFewRepeats: return "too few repeats";
        case Verdict::kNone: break;
    }
    return "no data";
}

Comparison compare(std::span<const RunRecord* const> variant, std::span<const RunRecord* const> baseline,
                   const Slo& slo, uint64_t seed) {
    constexpr double kTail = 0.025; // of a 95 % interval, on each side
    const auto ours = stats_of_all(variant, slo), theirs = stats_of_all(baseline, slo);
    const size_t metrics = metric_infos().size();
    Comparison c;
    c.metrics.resize(metrics);
    c.repeats = static_cast<uint32_t>(variant.size());
    if (variant.empty()) return c;

    uint32_t same = 0;
    for (size_t r = 0; r < variant.size(); ++r)
        for (size_t k = 0; k < variant[r]->requests.size(); ++k) {
            const RequestRecord &a = variant[r]->requests[k], &b = baseline[r]->requests[k];
            if (!a.completed() || !b.completed()) continue;
            c.pairs += 1;
            same += a.output == b.output && a.others == b.others;
        }
    if (c.pairs > 0) c.same_output = static_cast<double>(same) / c.pairs;

    const auto difference = [&](const std::vector<Pick>& picks) {
        auto values = metrics_of(ours, picks, slo);
        const auto of_baseline = metrics_of(theirs, picks, slo);
        for (size_t m = 0; m < metrics; ++m) values[m] -= of_baseline[m];
        return values;
    };
    const auto observed = difference(everything(ours));
    c.resamples = resamples_for(ours);
    std::vector<std::vector<double>> drawn(metrics);
    for (uint32_t i = 0; i < c.resamples; ++i) {
        const auto values = difference(resample(ours, Draws(seed, i)));
        for (size_t m = 0; m < metrics; ++m)
            if (!std::isnan(values[m])) drawn[m].push_back(values[m]);
    }
    for (size_t m = 0; m < metrics; ++m) {
        Difference& d = c.metrics[m];
        d.value = observed[m];
        d.low = quantile(drawn[m], kTail);
        d.high = quantile(drawn[m], 1 - kTail);
        d.verdict = verdict_of(d, metric_infos()[m].better, c.repeats);
    }
    return c;
}

}  // namespace patchbay::experiment
