#include "engine/trace/step_trace.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/placement/placed.hpp"
#include "engine/request/request.hpp"
#include "engine/request/sequence.hpp"
#include "engine/request/sequences.hpp"
#include "engine/step_report.hpp"
#include "execution/sync_reasons.hpp"
#include "host/swap_record.hpp"

namespace patchbay::engine {
namespace {

using Json = nlohmann::ordered_json;

enum Process : uint32_t { kEngine = 1, kRequests = 2 };
constexpr TraceFile::Track kSteps{kEngine, 1}, kPhases{kEngine, 2}, kCalls{kEngine, 3}, kSwaps{kEngine, 4};

TraceFile::Track track_of(RequestId id) { return {kRequests, id}; }

// Whether results of a step in flight came back, or sequences ended: also in a step that computes nothing itself.
bool ended_work(const StepReport& r) {
    const auto took_time = [](uint64_t ns) { return ns > 0; };
    return r.work.finished > 0 ||
           std::any_of(r.phase_ns.begin() + static_cast<size_t>(Phase::kRun), r.phase_ns.end(), took_time);
}

}  // namespace

StepTrace::StepTrace(std::unique_ptr<TraceFile> file, const Sequences& sequences)
    : file_(std::move(file)), sequences_(sequences) {
    file_->name_process(kEngine, "engine");
    file_->name_process(kRequests, "requests");
    file_->name_track(kSteps, "steps");
    file_->name_track(kPhases, "phases");
    file_->name_track(kCalls, "plugin calls");
    file_->name_track(kSwaps, "swaps");
}

void StepTrace::on_placed(const std::vector<Placed>& placed) {
    items_.clear();
    for (const Placed& p : placed) {
        const Sequence& s = *p.sequence;
        const bool decodes = s.outputs() + s.in_flight.placeholders > 0 && p.rows >= p.tokens; // else it recomputes
        items_.push_back({s.id, s.group, p.tokens, s.record.cached_tokens, s.record.preemptions, s.request->arrival_ns,
                          decodes});
    }
}

void StepTrace::on_end(const StepReport& report) {
    for (const host::SwapRecord& swap : report.swaps)
        file_->mark(kSwaps, std::string(name_of(swap.state)), report.start_ns, {{"swap", swap.text()}});
    if (items_.empty() && !ended_work(report)) return;
    write_step(report);
    write_phases(report);
    for (const Item& item : items_) follow(item, report);
    for (auto at = lanes_.begin(); at != lanes_.end();) {
        Lane& lane = at->second;
        const Sequence* s = sequences_.find(at->first);
        if (lane.step != report.step) {
            if (lane.in_flight) lane.end_ns = report.end_ns; // its last token came back in this step
            end_decoding(at->first, lane);
        }
        lane.in_flight = s && s->in_flight.tokens > 0;
        const bool is_over = lane.step != report.step && !s;
        at = is_over ? lanes_.erase(at) : std::next(at);
    }
    items_.clear();
    file_->flush();
}

void StepTrace::write_step(const StepReport& r) {
    Json args = {{"tokens", r.work.prefill_tokens + r.work.decode_tokens}, {"prefill", r.work.prefill_tokens},
                 {"decode", r.work.decode_tokens}, {"sequences", items_.size()}};
    if (r.preemption.preemptions > 0) args["preemptions"] = r.preemption.preemptions;
    if (r.work.trimmed > 0) args["trimmed"] = r.work.trimmed;
    if (!r.sync_reason.empty() && r.sync_reason != execution::sync_reason::kOff)
        args["waited for the step before"] = r.sync_reason;
    if (r.graph.replayed) args["graph"] = {{"tokens", r.graph.size}, {"padding", r.graph.padded_tokens}};
    else if (!items_.empty()) args["no graph"] = r.graph.miss;
    if (r.drafts.drafted_tokens > 0)
        args["drafts"] = {{"verified", r.drafts.drafted_tokens}, {"accepted", r.drafts.accepted_tokens}};
    file_->span(kSteps, "step " + std::to_string(r.step), r.start_ns, r.end_ns, args);
    file_->counter(kEngine, "requests", r.end_ns,
                   {{"running", r.queues.running_requests}, {"waiting", r.queues.waiting_requests}});
    file_->counter(kEngine, "pages", r.end_ns, {{"used", r.kv.used_pages}, {"cached", r.kv.cached_pages}});
    file_->counter(kEngine, "tokens of a step", r.end_ns,
                   {{"prefill", r.work.prefill_tokens}, {"decode", r.work.decode_tokens}});
}

// The phases of a step follow one another. Calls lie at the beginning of the phase that makes them.
void StepTrace::write_phases(const StepReport& r) {
    uint64_t at = r.start_ns;
    for (size_t i = 0; i < kPhaseCount; ++i) {
        const auto phase = static_cast<Phase>(i);
        const auto call = [&](const char* name, uint64_t begin_ns, uint64_t took_ns) {
            if (took_ns > 0) file_->span(kCalls, name, begin_ns, begin_ns + took_ns, nullptr);
            return begin_ns + took_ns;
        };
        if (phase == Phase::kPlan) call("scheduler: plan", at, r.calls.plan_ns);
        if (phase == Phase::kSample)
            call("sampler: sample", at, r.calls.sample_ns - std::min(r.calls.sample_ns, r.calls.forward.sampler));
        if (phase == Phase::kCommit) call("proposer: propose", at, r.calls.propose_ns);
        if (phase == Phase::kRun) {
            uint64_t next = call("attention: plan", at, r.calls.forward.attention_plan);
            next = call("model: forward", next, r.calls.forward.model_forward);
            next = call("device: launch of a graph", next, r.calls.forward.device_launch);
            next = call("sampler: on the device", next, r.calls.forward.sampler);
            call("device: end_step", next, r.calls.forward.device_end);
        }
        if (r.phase_ns[i] > 0) file_->span(kPhases, name_of(phase), at, at + r.phase_ns[i], nullptr);
        at += r.phase_ns[i];
    }
}

void StepTrace::follow(const Item& item, const StepReport& report) {
    const auto [at, is_new] = lanes_.try_emplace(item.id);
    Lane& lane = at->second;
    const TraceFile::Track track = track_of(item.id);
    if (is_new) {
        file_->name_track(track, item.id == item.group
                                     ? "request " + std::to_string(item.id)
                                     : "request " + std::to_string(item.group) + ", output " +
                                           std::to_string(item.id - item.group + 1));
        file_->span(track, "queue", std::min(item.arrival_ns, report.start_ns), report.start_ns,
                    {{"cached tokens", item.cached_tokens}});
    } else if (item.preemptions > lane.preemptions) {
        end_decoding(item.id, lane);
        file_->span(track, "preempted", lane.end_ns, report.start_ns, {{"times", item.preemptions}});
    }
    if (!item.decodes) {
        end_decoding(item.id, lane);
        file_->span(track, "prefill", report.start_ns, report.end_ns, {{"tokens", item.tokens}});
    } else {
        if (lane.steps == 0) lane.begin_ns = report.start_ns;
        lane.steps += 1;
        lane.tokens += item.tokens;
    }
    lane.end_ns = report.end_ns;
    lane.step = report.step;
    lane.preemptions = item.preemptions;
}

void StepTrace::end_decoding(RequestId id, Lane& lane) {
    if (lane.steps == 0) return;
    file_->span(track_of(id), "decode", lane.begin_ns, lane.end_ns, {{"steps", lane.steps}, {"tokens", lane.tokens}});
    lane.steps = lane.tokens = 0;
}

void StepTrace::end_all() {
    for (auto& [id, lane] : lanes_) end_decoding(id, lane);
    lanes_.clear();
}

Result<> StepTrace::close() {
    end_all();
    return file_->close();
}

std::unique_ptr<TraceFile> StepTrace::give_file() {
    end_all();
    return std::move(file_);
}

}  // namespace patchbay::engine
