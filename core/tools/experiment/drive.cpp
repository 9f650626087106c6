#include "experiment/drive.hpp"
#include "service/run_to_end.hpp"

#include <algorithm>

namespace patchbay::experiment {
namespace {

uint64_t since(uint64_t time_ns, uint64_t start_ns) { return time_ns > start_ns ? time_ns - start_ns : 0; }

bool failed(engine::FinishReason r) {
    return r == engine::FinishReason::kError || r == engine::FinishReason::kAbort;
}

void take(RequestRecord& r, const engine::RequestOutput& out, uint64_t start_ns) {
    const uint64_t at = since(out.time_ns, start_ns);
    auto& output = out.index == 0 ? r.output : r.others.at(out.index - 1);
    output.insert(output.end(), out.tokens.begin(), out.tokens.end());
    if (out.index == 0) r.token_ns.resize(r.output.size(), at);
    if (out.finish == engine::FinishReason::kNone) return;
    r.finish_ns = std::max(r.finish_ns, at);
    r.preemptions += out.preemptions;
    if (out.finish == engine::FinishReason::kError && r.error.empty()) r.error = out.stop_reason;
    if (!failed(r.finish) && (out.index == 0 || failed(out.finish))) r.finish = out.finish;
    if (out.index > 0) return;
    r.cached_tokens = out.cached_tokens;
    r.first_scheduled_ns = since(out.first_scheduled_ns, start_ns);
}

void summarise_kv(RunRecord& run) {
    double busy = 0, used = 0, most = 0;
    for (const engine::StepReport& step : run.steps) {
        if (step.total_pages == 0) continue;
        const double share = static_cast<double>(step.used_pages) / step.total_pages,
                     time = static_cast<double>(step.end_ns - step.start_ns);
        busy += time;
        used += share * time;
        most = std::max(most, share);
    }
    if (busy <= 0) return;
    run.kv_mean = used / busy;
    run.kv_max = most;
}

// Why the numbers of a run must not be used.
std::vector<std::string> faults_of(const RunRecord& run) {
    std::vector<std::string> faults;
    uint64_t sampler = 0, plan = 0, proposer = 0, failed = 0;
    std::string first_error;
    for (const engine::StepReport& s : run.steps) {
        sampler += s.sampler_faults;
        plan += s.plan_faults;
        proposer += s.proposer_faults;
    }
    for (const RequestRecord& r : run.requests) {
        if (r.completed() || (run.end == RunEnd::kInterrupted && r.error.empty())) continue;
        if (failed++ == 0) first_error = r.error;
    }
    if (failed > 0)
        faults.push_back(std::to_string(failed) + " of " + std::to_string(run.requests.size()) + " requests failed" +
                         (first_error.empty() ? "" : ": " + first_error));
    if (sampler > 0) faults.push_back(std::to_string(sampler) + " sampler faults");
    if (proposer > 0) faults.push_back(std::to_string(proposer) + " proposer faults");
    if (plan > 0) faults.push_back(std::to_string(plan) + " plans of the scheduler were refused");
    return faults;
}

}  // namespace

void drive(DrivenEngine& engine, Clock& clock, const std::vector<PlannedRequest>& planned, const DriveHooks& hooks,
           RunRecord& run) {
    constexpr uint64_t kHeadStart = 1'000'000; // so that the first arrival is not in the past when it is added
    run.requests.assign(planned.size(), {});
    const uint64_t start = clock.now_ns() + kHeadStart + planned.size() * 1'000;
    size_t finished = 0;
    std::vector<uint32_t> unfinished(planned.size()); // outputs
    std::vector<engine::RequestId> ids;
    for (size_t i = 0; i < planned.size(); ++i) {
        RequestRecord& record = run.requests[i];
        record.arrival_ns = planned[i].arrival_ns;
        record.prompt_tokens = static_cast<uint32_t>(planned[i].prompt.size());
        record.others.resize(planned[i].sampling.n - 1);
        unfinished[i] = planned[i].sampling.n;
        engine::Request request;
        request.prompt = planned[i].prompt;
        request.sampling = planned[i].sampling;
        request.arrival_ns = start + planned[i].arrival_ns;
        request.deadline_ns = planned[i].deadline_ns > 0 ? start + planned[i].deadline_ns : 0;
        request.tenant = record.tenant = planned[i].tenant;
        request.priority = record.priority = planned[i].priority;
        record.deadline_ns = planned[i].deadline_ns;
        request.expected_output_tokens = planned[i].output_tokens;
        request.on_output = [&, i, start](const engine::RequestOutput& out) {
            take(run.requests[i], out, start);
            finished += out.finish != engine::FinishReason::kNone && --unfinished[i] == 0;
            if (hooks.on_output) hooks.on_output(out);
        };
        const auto id = engine.add_request(std::move(request));
        if (!id) {
            record.finish = engine::FinishReason::kError;
            record.error = id.error();
            finished += 1;
            continue;
        }
        ids.push_back(*id);
        if (hooks.on_request) hooks.on_request(*id, start + planned[i].arrival_ns, record.prompt_tokens, unfinished[i]);
    }
    if (hooks.on_start) hooks.on_start(start);
    const auto go_on = [&] {
        if (!engine.has_unfinished() || !hooks.interrupted || !hooks.interrupted()) return true;
        run.end = RunEnd::kInterrupted;
        for (const engine::RequestId id : ids) engine.abort(id);
        return false;
    };
    const auto keep = [&](engine::StepReport& report) {
        if (hooks.on_step) hooks.on_step(report, finished);
        report.start_ns = since(report.start_ns, start);
        report.end_ns = since(report.end_ns, start);
        run.steps.push_back(report);
    };
    if (const auto done = service::run_to_end(engine, {go_on, keep}); !done) {
        run.end = RunEnd::kFailed;
        run.faults.push_back(done.error());
    }
    for (const RequestRecord& r : run.requests) run.duration_ns = std::max(run.duration_ns, r.finish_ns);
    summarise_kv(run);
    for (std::string& fault : faults_of(run)) run.faults.push_back(std::move(fault));
}

}  // namespace patchbay::experiment
