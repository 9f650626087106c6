#include "experiment/run_summary.hpp"

#include <algorithm>
#include <limits>

#include "experiment/conclusion.hpp"
#include "experiment/overload.hpp"

namespace patchbay::experiment {
namespace {

uint64_t digest_of(const RequestRecord& r) {
    uint64_t hash = 0xcbf29ce484222325; // FNV-1a over tokens
    const auto add = [&](uint64_t word) { hash = (hash ^ word) * 0x100000001b3; };
    const auto add_all = [&](const std::vector<engine::TokenId>& tokens) {
        add(tokens.size());
        for (const engine::TokenId t : tokens) add(static_cast<uint64_t>(t));
    };
    add_all(r.output);
    for (const auto& other : r.others) add_all(other);
    return std::max<uint64_t>(hash, 1);
}

std::map<ClassName, ClassNumbers> by_class(const RunRecord& run, const Slo& slo, const TimeSpan& span,
                                           const ByClass& by) {
    std::map<ClassName, ClassNumbers> out;
    for (const RequestRecord& r : run.requests) out[class_of(r, by)].requests += span.has(r.arrival_ns);
    for (auto& [name, numbers] : out)
        numbers.metrics =
            metrics_of(run, slo, span, [&](const RequestRecord& r) { return class_of(r, by) == name; });
    return out;
}

// Of the requests that arrive in the span: those that keep the objective.
double objective_share(const RunRecord& run, const Slo& slo, const TimeSpan& span) {
    uint64_t arrived = 0, kept = 0;
    for (const RequestRecord& r : run.requests) {
        if (!span.has(r.arrival_ns)) continue;
        arrived += 1;
        kept += meets(slo, r);
    }
    return arrived > 0 ? static_cast<double>(kept) / static_cast<double>(arrived) : 0;
}

}  // namespace

ClassName class_of(const RequestRecord& r, const ByClass& by) {
    switch (by.kind) {
        case ClassKind::kTenant: return {r.tenant, std::to_string(r.tenant)};
        case ClassKind::kPriority: return {r.priority, std::to_string(r.priority)};
        case ClassKind::kPromptLength:
            for (const uint32_t bound : by.bounds)
                if (r.prompt_tokens <= bound) return {bound, "≤ " + shown(bound)};
            return {std::numeric_limits<int64_t>::max(), "> " + shown(by.bounds.back())};
        case ClassKind::kLabel: break;
    }
    return {0, r.label.empty() ? "(none)" : r.label};
}

double judged_share(const std::optional<CpuUse>& use, uint64_t duration_ns) {
    constexpr uint64_t kShortestNs = 1'000'000'000; // in which ticks of 10 ms are fine enough
    return use && duration_ns >= kShortestNs ? use->steal + use->others : 0;
}

RunSummary summary_of(const RunRecord& run, const Counting& counting) {
    RunSummary out;
    out.variant = run.variant;
    out.repeat = run.repeat;
    out.position = run.position;
    out.end = run.end;
    out.faults = run.faults;
    const TimeSpan span = counted_span(run, counting.window);
    out.metrics = metrics_of(run, counting.slo, span);
    for (const NamedNumber& n : run.numbers)
        if (is_plugin_metric(n.name)) out.of_plugins.push_back(n);
    for (const ByClass& by : counting.by) out.classes.push_back(by_class(run, counting.slo, span, by));
    out.load = load_of(run, span);
    out.timing = timing_of(run);
    for (const RequestRecord& r : run.requests) out.outputs.push_back(r.completed() ? digest_of(r) : 0);
    out.swaps = run.swaps;
    out.attempt = run.attempt;
    out.rate = run.rate;
    out.others_share = judged_share(run.cpu_use, run.duration_ns);
    if (run.rate && counting.capacity) out.objective = objective_share(run, counting.capacity->slo, span);
    return out;
}

}  // namespace patchbay::experiment
