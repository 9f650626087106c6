// Made-up runs for tests of metrics, comparisons and conclusions.
#pragma once
#include <gmock/gmock.h>

#include "experiment/conclusion.hpp"

namespace patchbay::experiment {

inline constexpr uint64_t kMs = 1'000'000;

inline RequestRecord request(uint64_t arrival_ms, std::vector<uint64_t> tokens_ms, uint32_t prompt = 10) {
    RequestRecord r;
    r.arrival_ns = arrival_ms * kMs;
    r.prompt_tokens = prompt;
    for (const uint64_t t : tokens_ms) r.token_ns.push_back(t * kMs);
    r.output.assign(tokens_ms.size(), 1);
    r.finish_ns = tokens_ms.empty() ? r.arrival_ns : r.token_ns.back();
    r.finish = engine::FinishReason::kLength;
    return r;
}

inline RunRecord run_of(std::vector<RequestRecord> requests, uint64_t duration_ms, size_t variant = 0,
                        uint32_t repeat = 0) {
    RunRecord run;
    run.variant = variant;
    run.repeat = repeat;
    run.requests = std::move(requests);
    run.duration_ns = duration_ms * kMs;
    return run;
}

inline double value_of(const std::vector<double>& values, const std::string& name) {
    for (size_t i = 0; i < values.size(); ++i)
        if (metric_infos()[i].name == name) return values[i];
    ADD_FAILURE() << "no metric " << name;
    return 0;
}

inline const Difference& difference_of(const Comparison& c, const std::string& name) {
    size_t i = 0;
    while (metric_infos()[i].name != name) ++i;
    return c.metrics[i];
}

// `count` runs whose requests take about `ttft_ms`, with the same spread in every set; their
// ends come 38 to 42 ms later.
inline std::vector<RunRecord> runs_with(uint64_t ttft_ms, uint32_t count, size_t variant) {
    std::vector<RunRecord> runs;
    for (uint32_t r = 0; r < count; ++r) {
        std::vector<RequestRecord> requests;
        for (uint64_t i = 0; i < 20; ++i)
            requests.push_back(request(i, {i + ttft_ms + (i * 7 + r * 3) % 10, i + ttft_ms + 38 + r % 5}));
        runs.push_back(run_of(std::move(requests), 1000, variant, r));
    }
    return runs;
}

inline std::vector<RunRecord> all_runs(std::vector<RunRecord> a, const std::vector<RunRecord>& b) {
    a.insert(a.end(), b.begin(), b.end());
    for (uint32_t i = 0; i < a.size(); ++i) a[i].position = i;
    return a;
}

inline std::vector<RunSummary> summaries(const std::vector<RunRecord>& runs, const Counting& counting = {}) {
    std::vector<RunSummary> out;
    for (const RunRecord& run : runs) out.push_back(summary_of(run, counting));
    return out;
}

inline Conclusion conclude(const std::vector<RunRecord>& runs, const std::vector<Contestant>& contestants,
                           const Question& q, const Slo& slo, const std::vector<ByClass>& by = {}) {
    return conclude(summaries(runs, {slo, by}), contestants, q, by);
}

inline Question question_of(size_t baseline, const std::vector<std::string>& primary) {
    Question q{.baseline = baseline, .primary = {}, .windows = {}, .first_stage = {}};
    for (const std::string& name : primary) q.primary.push_back(metric_named(name).value());
    return q;
}

}  // namespace patchbay::experiment
