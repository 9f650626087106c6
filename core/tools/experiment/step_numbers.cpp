#include "experiment/step_numbers.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "runner/graph_use.hpp"

namespace patchbay::experiment {
namespace {

using engine::StepReport;
using runner::GraphMiss;

struct Call { // of plugins in a step
    const char *name, *label;
    uint64_t (*ns)(const StepReport&);
};
constexpr Call kCalls[] = {
    {"time_scheduler_plan", "scheduler plan", [](const StepReport& r) { return r.calls.plan_ns; }},
    {"time_sampler_sample", "sampler sample", [](const StepReport& r) { return r.calls.sample_ns; }},
    {"time_proposer_propose", "proposer propose", [](const StepReport& r) { return r.calls.propose_ns; }},
    {"time_kv_policy_update", "kv_policy update", [](const StepReport& r) { return r.calls.kv_update_ns; }},
    {"time_kv_policy_choose", "kv_policy choose", [](const StepReport& r) { return r.calls.kv_choose_ns; }},
    {"time_model_forward", "model forward", [](const StepReport& r) { return r.calls.forward.model_forward; }},
    {"time_attention_plan", "attention plan", [](const StepReport& r) { return r.calls.forward.attention_plan; }},
    {"time_attention_append", "attention append", [](const StepReport& r) { return r.calls.forward.attention_append; }},
    {"time_attention_run", "attention run", [](const StepReport& r) { return r.calls.forward.attention_run; }},
    {"time_device_begin", "device begin", [](const StepReport& r) { return r.calls.forward.device_begin; }},
    {"time_device_launch", "device launch", [](const StepReport& r) { return r.calls.forward.device_launch; }},
    {"time_device_end", "device end", [](const StepReport& r) { return r.calls.forward.device_end; }},
};

struct Miss { // why no graph was replayed
    GraphMiss reason;
    const char *name, *label;
};
constexpr Miss kMisses[] = {{GraphMiss::kUnsupported, "graph_miss_unsupported", "miss: unsupported"},
                            {GraphMiss::kMixedBatch, "graph_miss_mixed_batch", "miss: mixed batch"},
                            {GraphMiss::kTooLarge, "graph_miss_too_large", "miss: too large"},
                            {GraphMiss::kNotCaptured, "graph_miss_not_captured", "miss: not captured"},
                            {GraphMiss::kHiddenStates, "graph_miss_hidden_states", "miss: hidden states"}};

double percent_of(uint64_t part, uint64_t of) { return 100 * static_cast<double>(part) / static_cast<double>(of); }

}  // namespace

const MetricList& step_metrics() {
    static const MetricList infos = [] {
        MetricList all{{"waiting_mean", "req", "waiting mean", Better::kLower, true},
                       {"waiting_p99", "req", "waiting p99", Better::kLower, true},
                       {"waiting_tokens_mean", "tok", "waiting tokens mean", Better::kLower, true},
                       {"waiting_tokens_p99", "tok", "waiting tokens p99", Better::kLower, true},
                       {"oldest_wait_mean", "ms", "oldest wait mean", Better::kLower, true},
                       {"oldest_wait_p99", "ms", "oldest wait p99", Better::kLower, true},
                       {"kv_mean", "%", "KV use mean", Better::kNeither, false},
                       {"kv_max", "%", "KV use max", Better::kNeither, false},
                       {"kv_fragmentation", "%", "KV fragmentation", Better::kLower, false},
                       {"recomputed_tokens", "per run", "recomputed tokens", Better::kLower, false},
                       {"batch_sequences", "/step", "batch sequences", Better::kNeither, true},
                       {"batch_tokens", "/step", "batch tokens", Better::kNeither, true},
                       {"acceptance", "%", "acceptance", Better::kHigher, false},
                       {"tokens_per_step", "tok", "tokens per step", Better::kHigher, true},
                       {"graph_replay_share", "%", "graph replays", Better::kHigher, false}};
        for (const Miss& miss : kMisses) all.push_back({miss.name, "%", miss.label, Better::kLower, false});
        all.push_back({"padding_share", "%", "graph padding", Better::kLower, false});
        for (const Call& call : kCalls) all.push_back({call.name, "µs/step", call.label, Better::kLower, true});
        return all;
    }();
    return infos;
}

void StepNumbers::Level::add(double value, double time) {
    if (!parts_.empty() && parts_.back().value == value) parts_.back().time += time;
    else parts_.push_back({value, time});
}

double StepNumbers::Level::mean() const {
    double sum = 0, time = 0;
    for (const Part& p : parts_) {
        sum += p.value * p.time;
        time += p.time;
    }
    return sum / time;
}

double StepNumbers::Level::p99() const {
    std::vector<Part> parts = parts_;
    std::ranges::sort(parts, {}, &Part::value);
    double all = 0, so_far = 0;
    for (const Part& p : parts) all += p.time;
    for (const Part& p : parts) {
        so_far += p.time;
        if (so_far >= 0.99 * all) return p.value;
    }
    return parts.back().value;
}

double StepNumbers::Level::max() const {
    return std::ranges::max_element(parts_, {}, &Part::value)->value;
}

void StepNumbers::got(uint64_t tokens) {
    step_given_ += tokens;
    step_given_to_ += tokens > 0;
}

void StepNumbers::leave_out() { step_given_ = step_given_to_ = 0; }

void StepNumbers::add(const StepReport& r) {
    given_ += std::exchange(step_given_, 0);
    given_to_ += std::exchange(step_given_to_, 0);
    const auto time = static_cast<double>(r.end_ns - r.start_ns);
    if (time <= 0) return; // nothing can be weighted by it
    steps_ += 1;
    waiting_.add(r.queues.waiting_requests, time);
    waiting_tokens_.add(static_cast<double>(r.queues.waiting_tokens), time);
    oldest_wait_ms_.add(static_cast<double>(r.queues.oldest_wait_ns) * 1e-6, time);
    if (r.kv.total_pages > 0) kv_.add(100.0 * r.kv.used_pages / r.kv.total_pages, time);
    used_slots_ += static_cast<double>(r.kv.token_slots) * time;
    empty_slots_ += static_cast<double>(r.kv.empty_slots) * time;
    lost_ += r.preemption.preempted_tokens;
    drafted_ += r.drafts.drafted_tokens;
    accepted_ += r.drafts.accepted_tokens;
    calls_ns_.resize(std::size(kCalls));
    for (size_t i = 0; i < calls_ns_.size(); ++i) calls_ns_[i] += kCalls[i].ns(r);
    if (r.work.scheduled_tokens == 0) return;
    passes_ += 1;
    sequences_ += r.work.scheduled_seqs;
    tokens_ += r.work.scheduled_tokens;
    padded_ += r.graph.padded_tokens;
    replayed_ += r.graph.replayed;
    if (!r.graph.replayed) misses_[r.graph.miss] += 1;
}

std::vector<NamedNumber> StepNumbers::numbers() const {
    std::vector<NamedNumber> out;
    if (steps_ == 0) return out;
    const auto add = [&](std::string name, double value) { out.push_back({std::move(name), value}); };
    add("waiting_mean", waiting_.mean());
    add("waiting_p99", waiting_.p99());
    add("waiting_tokens_mean", waiting_tokens_.mean());
    add("waiting_tokens_p99", waiting_tokens_.p99());
    add("oldest_wait_mean", oldest_wait_ms_.mean());
    add("oldest_wait_p99", oldest_wait_ms_.p99());
    if (!kv_.empty()) {
        add("kv_mean", kv_.mean());
        add("kv_max", kv_.max());
    }
    if (used_slots_ > 0) add("kv_fragmentation", 100 * empty_slots_ / used_slots_);
    add("recomputed_tokens", static_cast<double>(lost_));
    if (drafted_ > 0) add("acceptance", percent_of(accepted_, drafted_));
    if (given_to_ > 0) add("tokens_per_step", static_cast<double>(given_) / static_cast<double>(given_to_));
    if (passes_ == 0) return out;
    add("batch_sequences", static_cast<double>(sequences_) / static_cast<double>(passes_));
    add("batch_tokens", static_cast<double>(tokens_) / static_cast<double>(passes_));
    const auto missed = [&](GraphMiss reason) {
        const auto at = misses_.find(name_of(reason));
        return at == misses_.end() ? uint64_t{0} : at->second;
    };
    if (missed(GraphMiss::kDevice) + missed(GraphMiss::kDisabled) < passes_) { // else there are no graphs
        add("graph_replay_share", percent_of(replayed_, passes_));
        for (const Miss& miss : kMisses) add(miss.name, percent_of(missed(miss.reason), passes_));
        add("padding_share", percent_of(padded_, tokens_ + padded_));
    }
    for (size_t i = 0; i < calls_ns_.size(); ++i)
        if (calls_ns_[i] > 0) // else none was made, or time stands still in calls
            add(kCalls[i].name, static_cast<double>(calls_ns_[i]) * 1e-3 / static_cast<double>(steps_));
    return out;
}

}  // namespace patchbay::experiment
