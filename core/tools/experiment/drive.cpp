#include "experiment/drive.hpp"
#include "service/run_to_end.hpp"

#include <algorithm>
#include <utility>

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

// Why the numbers of a run must not be used.
std::vector<std::string> faults_of(const RunRecord& run) {
    std::vector<std::string> faults;
    uint64_t sampler = 0, plan = 0, proposer = 0, kv_policy = 0, failed = 0;
    std::string first_error;
    for (const engine::StepReport& s : run.steps) {
        sampler += s.sampler_faults;
        plan += s.plan_faults;
        proposer += s.proposer_faults;
        kv_policy += s.kv_policy_faults;
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
    if (kv_policy > 0) faults.push_back(std::to_string(kv_policy) + " faults of the kv_policy");
    if (plan > 0) faults.push_back(std::to_string(plan) + " plans of the scheduler were refused");
    return faults;
}

constexpr uint32_t kNone = ~uint32_t{0};

// Gives the engine its requests: those with a time of their own at the start, the others when what they follow is done.
class Feed {
  public:
    Feed(DrivenEngine& engine, const std::vector<PlannedRequest>& planned, const DriveHooks& hooks, RunRecord& run,
         uint64_t start_ns)
        : engine_(engine), planned_(planned), hooks_(hooks), run_(run), start_(start_ns), next_(planned.size(), kNone),
          unfinished_(planned.size()), histories_(planned.size()) {
        run.requests.assign(planned.size(), {});
        for (uint32_t i = 0; i < planned.size(); ++i) {
            RequestRecord& record = run.requests[i];
            record.others.resize(planned[i].sampling.n - 1);
            record.tenant = planned[i].tenant;
            record.priority = planned[i].priority;
            record.label = planned[i].label;
            unfinished_[i] = planned[i].sampling.n;
            if (planned[i].follows) next_[*planned[i].follows] = i;
        }
    }

    void add_all() {
        for (uint32_t i = 0; i < planned_.size(); ++i)
            if (!planned_[i].follows) add(i, planned_[i].arrival_ns);
        add_due();
    }
    // Requests whose predecessors are done by now. Not from inside a step.
    void add_due() {
        while (!due_.empty()) { // those that are refused may end others
            const auto due = std::exchange(due_, {});
            for (const uint32_t i : due) add_after(i, *planned_[i].follows);
        }
    }
    void abort_all() {
        for (const engine::RequestId id : ids_) engine_.abort(id);
    }
    size_t finished() const { return finished_; }

  private:
    void add_after(uint32_t i, uint32_t before) {
        RequestRecord& previous = run_.requests[before];
        if (!previous.completed()) return refuse(i, "the request that it follows failed");
        if (planned_[i].continues) {
            histories_[i] = std::move(histories_[before]);
            histories_[i].insert(histories_[i].end(), planned_[before].prompt.begin(), planned_[before].prompt.end());
            histories_[i].insert(histories_[i].end(), previous.output.begin(), previous.output.end());
        }
        histories_[before] = {};
        add(i, previous.finish_ns + planned_[i].think_ns);
    }

    void add(uint32_t i, uint64_t arrival_ns) { // since the start
        const PlannedRequest& planned = planned_[i];
        RequestRecord& record = run_.requests[i];
        record.arrival_ns = arrival_ns;
        record.deadline_ns = planned.deadline_ns + (planned.follows && planned.deadline_ns > 0 ? arrival_ns : 0);
        engine::Request request;
        request.prompt = histories_[i];
        request.prompt.insert(request.prompt.end(), planned.prompt.begin(), planned.prompt.end());
        record.prompt_tokens = static_cast<uint32_t>(request.prompt.size());
        request.sampling = planned.sampling;
        request.arrival_ns = start_ + arrival_ns;
        request.deadline_ns = record.deadline_ns > 0 ? start_ + record.deadline_ns : 0;
        request.tenant = planned.tenant;
        request.priority = planned.priority;
        request.expected_output_tokens = planned.output_tokens;
        request.ends_after = planned.ends_after;
        request.on_output = [this, i](const engine::RequestOutput& out) {
            take(run_.requests[i], out, start_);
            if (out.finish != engine::FinishReason::kNone && --unfinished_[i] == 0) end(i);
            if (hooks_.on_output) hooks_.on_output(out);
        };
        const auto id = engine_.add_request(std::move(request));
        if (!id) return refuse(i, id.error());
        ids_.push_back(*id);
        if (hooks_.on_request) hooks_.on_request(*id, start_ + arrival_ns, record.prompt_tokens, planned.sampling.n);
    }
    void refuse(uint32_t i, const std::string& why) {
        run_.requests[i].finish = engine::FinishReason::kError;
        run_.requests[i].error = why;
        end(i);
    }
    void end(uint32_t i) {
        finished_ += 1;
        if (next_[i] != kNone) due_.push_back(next_[i]);
        else histories_[i] = {};
    }

    DrivenEngine& engine_;
    const std::vector<PlannedRequest>& planned_;
    const DriveHooks& hooks_;
    RunRecord& run_;
    uint64_t start_;
    std::vector<uint32_t> next_, due_; // next_: the request that follows
    std::vector<uint32_t> unfinished_; // outputs
    std::vector<std::vector<engine::TokenId>> histories_; // of what continues: all that was said before it
    std::vector<engine::RequestId> ids_;
    size_t finished_ = 0;
};

}  // namespace

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

void drive(DrivenEngine& engine, Clock& clock, const std::vector<PlannedRequest>& planned, const DriveHooks& hooks,
           RunRecord& run) {
    constexpr uint64_t kHeadStart = 1'000'000; // so that the first arrival is not in the past when it is added
    const uint64_t start = clock.now_ns() + kHeadStart + planned.size() * 1'000;
    Feed feed(engine, planned, hooks, run, start);
    feed.add_all();
    if (hooks.on_start) hooks.on_start(start);
    const auto go_on = [&] {
        feed.add_due();
        if (!engine.has_unfinished() || !hooks.interrupted || !hooks.interrupted()) return true;
        run.end = RunEnd::kInterrupted;
        feed.abort_all();
        return false;
    };
    const auto keep = [&](engine::StepReport& report) {
        if (hooks.on_step) hooks.on_step(report, feed.finished());
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
