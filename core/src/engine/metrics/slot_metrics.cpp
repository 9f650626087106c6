#include "engine/metrics/slot_metrics.hpp"

#include <patchbay/abi.h>

#include "engine/metrics/seconds.hpp"
#include "engine/step_report.hpp"
#include "engine/swap/swap_slot.hpp"

namespace patchbay::engine {
namespace {

constexpr const char* kOutcomes[] = {"committed", "refused", "rolled_back"};

const char* outcome_of(host::SwapState state) {
    if (state == host::SwapState::kCommitted) return "committed";
    return state == host::SwapState::kRefused ? "refused" : "rolled_back";
}

}  // namespace

using Report = const StepReport&;
const std::array<SlotMetrics::TimedCall, 12> SlotMetrics::kCalls = {{
    {"scheduler", "plan", [](Report r) { return r.calls.plan_ns; }},
    {"sampler", "sample", [](Report r) { return r.calls.sample_ns; }},
    {"proposer", "propose", [](Report r) { return r.calls.propose_ns; }},
    {"kv_policy", "update", [](Report r) { return r.calls.kv_update_ns; }},
    {"kv_policy", "choose", [](Report r) { return r.calls.kv_choose_ns; }},
    {"model", "forward", [](Report r) { return r.calls.forward.model_forward; }},
    {"attention", "plan", [](Report r) { return r.calls.forward.attention_plan; }},
    {"attention", "append_kv", [](Report r) { return r.calls.forward.attention_append; }},
    {"attention", "run", [](Report r) { return r.calls.forward.attention_run; }},
    {"device", "begin_step", [](Report r) { return r.calls.forward.device_begin; }},
    {"device", "graph_launch", [](Report r) { return r.calls.forward.device_launch; }},
    {"device", "end_step", [](Report r) { return r.calls.forward.device_end; }},
}};

const std::array<SlotMetrics::FaultCount, 8> SlotMetrics::kFaults = {{
    {"scheduler", "error", [](Report r) { return r.calls.plan_faults - r.calls.plan_breaches; }},
    {"scheduler", "contract", [](Report r) { return r.calls.plan_breaches; }},
    {"sampler", "logits", [](Report r) { return r.calls.sampler_faults - r.calls.sampler_breaches; }},
    {"sampler", "contract", [](Report r) { return r.calls.sampler_breaches; }},
    {"proposer", "error", [](Report r) { return r.calls.proposer_faults - r.calls.proposer_breaches; }},
    {"proposer", "contract", [](Report r) { return r.calls.proposer_breaches; }},
    {"kv_policy", "error", [](Report r) { return r.calls.kv_policy_faults - r.calls.kv_policy_breaches; }},
    {"kv_policy", "contract", [](Report r) { return r.calls.kv_policy_breaches; }},
}};

SlotMetrics::SlotMetrics(metrics::Metrics& all, metrics::Metrics& of_plugins,
                         const std::vector<host::Identity>& at_first)
    : all_(all), of_plugins_(of_plugins) {
    for (const host::Identity& p : at_first) {
        enter(p);
        count_calls_for(p);
        if (!swap_slot(p.kind)) continue; // from 0 on: of a series that begins at 1 no rate sees the first
        for (const char* outcome : kOutcomes) swaps(p.kind, outcome);
        pauses(p.kind);
    }
    for (const char* outcome : kOutcomes) transactions(outcome);
    pauses("several");
}

SlotMetrics::~SlotMetrics() {
    for (prometheus::Gauge* plugin : plugins_) plugin->Set(0);
    for (const auto& [kind, name] : with_gauges_) of_plugins_.plugin_left(kind, name);
}

void SlotMetrics::replaced_by(const std::vector<host::Identity>& next) {
    for (const host::Identity& p : next) with_gauges_.erase({p.kind, p.name_in_library()});
}

void SlotMetrics::on_step(Report r) {
    for (const host::SwapRecord& swap : r.swaps)
        if (!swap.after_calls) on_swap(swap);
    for (size_t i = 0; i < kCalls.size(); ++i) // a step without the call is no observation
        if (const uint64_t ns = calls_[i] ? kCalls[i].ns(r) : 0) calls_[i]->Observe(seconds(ns));
    for (size_t i = 0; i < kFaults.size(); ++i)
        if (faults_[i]) faults_[i]->Increment(kFaults[i].count(r));
    if (chosen_evictions_) chosen_evictions_->Increment(r.kv.chosen_evictions);
    for (const host::SwapRecord& swap : r.swaps)
        if (swap.after_calls) on_swap(swap);
}

void SlotMetrics::on_swap(const host::SwapRecord& r) {
    using host::SwapState;
    if (r.state == SwapState::kOnProbation) {
        observe_pause(r);
        exchange(r.from, r.to);
        return;
    }
    swaps(r.kind, outcome_of(r.state)).Increment();
    if (r.transaction > 0 && ended_transactions_.insert(r.transaction).second)
        transactions(outcome_of(r.state)).Increment();
    if (r.state != SwapState::kCommitted)
        all_.counter("patchbay_plugin_swap_failures_total", {{"kind", r.kind}, {"phase", r.phase}}).Increment();
    if (r.state != SwapState::kRolledBack) return;
    faults(r.to, "probation").Increment();
    exchange(r.to, r.from);
}

void SlotMetrics::observe_pause(const host::SwapRecord& r) {
    if (r.transaction > 0 && !begun_transactions_.insert(r.transaction).second) return;
    pauses(r.transaction > 0 ? "several" : r.kind).Observe(seconds(r.pause_ns));
}

void SlotMetrics::enter(const host::Identity& p) {
    plugins_.insert(&info(p));
    with_gauges_.insert({p.kind, p.name_in_library()});
    info(p).Set(1);
}

void SlotMetrics::exchange(const host::Identity& from, const host::Identity& to) {
    info(from).Set(0);
    if (from.name_in_library() != to.name_in_library()) of_plugins_.plugin_left(from.kind, from.name_in_library());
    enter(to);
    count_calls_for(to);
}

void SlotMetrics::count_calls_for(const host::Identity& p) {
    for (size_t i = 0; i < kCalls.size(); ++i)
        if (p.kind == kCalls[i].kind)
            calls_[i] = &all_.histogram("patchbay_plugin_call_seconds",
                                        {{"kind", p.kind}, {"plugin", p.name_in_library()}, {"call", kCalls[i].name}});
    for (size_t i = 0; i < kFaults.size(); ++i)
        if (p.kind == kFaults[i].kind) faults_[i] = &faults(p, kFaults[i].reason);
    if (swap_slot(p.kind)) faults(p, "probation");
    if (p.kind == "kv_policy")
        chosen_evictions_ =
            &all_.counter("patchbay_kv_policy_evictions_total", {{"kind", p.kind}, {"plugin", p.name_in_library()}});
}

prometheus::Gauge& SlotMetrics::info(const host::Identity& p) {
    const std::string abi = std::to_string(PB_ABI_MAJOR) + "." + std::to_string(PB_ABI_MINOR);
    return all_.gauge("patchbay_plugin_info", {{"kind", p.kind},
                                               {"plugin", p.name_in_library()},
                                               {"version", p.version},
                                               {"abi", abi},
                                               {"sha256", p.sha256}});
}

prometheus::Counter& SlotMetrics::swaps(const std::string& kind, const char* outcome) {
    return all_.counter("patchbay_plugin_swaps_total", {{"kind", kind}, {"outcome", outcome}});
}

prometheus::Counter& SlotMetrics::transactions(const char* outcome) {
    return all_.counter("patchbay_plugin_swap_transactions_total", {{"outcome", outcome}});
}

prometheus::Histogram& SlotMetrics::pauses(const std::string& kind) {
    return all_.histogram("patchbay_plugin_swap_pause_seconds", {{"kind", kind}});
}

prometheus::Counter& SlotMetrics::faults(const host::Identity& p, const char* reason) {
    return all_.counter("patchbay_plugin_faults_total",
                        {{"kind", p.kind}, {"plugin", p.name_in_library()}, {"reason", reason}});
}

}  // namespace patchbay::engine
