#include "experiment/drive.hpp"
#include "experiment/follow_ups.hpp"
#include "experiment/step_numbers.hpp"
#include "experiment/timed_requests.hpp"
#include "service/run_to_end.hpp"

#include <algorithm>
#include <optional>
#include <string>
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

// Why the numbers of a run must not be used, and what else follows from all of its rows.
class Tally {
  public:
    void add(const engine::StepReport& s) {
        sampler_ += s.calls.sampler_faults;
        plan_ += s.calls.plan_faults;
        proposer_ += s.calls.proposer_faults;
        kv_policy_ += s.calls.kv_policy_faults;
    }
    void add_ended(const RequestRecord& r, RunEnd run) {
        ended_ += 1;
        duration_ns_ = std::max(duration_ns_, r.finish_ns);
        if (r.completed() || (run == RunEnd::kInterrupted && r.error.empty())) return;
        if (failed_++ == 0) first_error_ = r.error;
    }
    void write(RunRecord& run) const {
        run.duration_ns = duration_ns_;
        const auto add = [&](const std::string& fault) { run.faults.push_back(fault); };
        const uint64_t failed = failed_ + (run.end == RunEnd::kInterrupted ? 0 : run.requests.size() - ended_);
        if (failed > 0)
            add(std::to_string(failed) + " of " + std::to_string(run.requests.size()) + " requests failed" +
                (first_error_.empty() ? "" : ": " + first_error_));
        if (sampler_ > 0) add(std::to_string(sampler_) + " sampler faults");
        if (proposer_ > 0) add(std::to_string(proposer_) + " proposer faults");
        if (kv_policy_ > 0) add(std::to_string(kv_policy_) + " faults of the kv_policy");
        if (plan_ > 0) add(std::to_string(plan_) + " plans of the scheduler were refused");
    }

  private:
    uint64_t sampler_ = 0, plan_ = 0, proposer_ = 0, kv_policy_ = 0;
    uint64_t failed_ = 0, ended_ = 0, duration_ns_ = 0; // of requests
    std::string first_error_;
};

// Gives the engine its requests: those with a time of their own before it, the others when what they follow is done.
class Feed {
  public:
    Feed(engine::SteppingEngine& engine, const Requests& planned, const DriveHooks& hooks, RunRecord& run,
         Tally& tally, StepNumbers& numbers, uint64_t start_ns)
        : engine_(engine), planned_(planned), hooks_(hooks), run_(run), tally_(tally), numbers_(numbers),
          start_(start_ns), timed_(planned, start_ns), follow_ups_(planned), unfinished_(planned.size()),
          ids_(planned.size()) {
        run.requests.assign(planned.size(), {});
        for (uint32_t i = 0; i < planned.size(); ++i) run.requests[i].arrival_ns = planned.arrival_ns(i);
    }

    void add_by_time(uint64_t now_ns) {
        while (const auto i = timed_.next(now_ns)) add(*i, planned_.make(*i), planned_.arrival_ns(*i));
        add_due();
    }
    // Requests whose predecessors are done by now. Not from inside a step.
    void add_due() { // those that are refused may end others
        for (auto due = follow_ups_.take_due(); !due.empty(); due = follow_ups_.take_due())
            for (const uint32_t i : due) add_after(i, *planned_.follows(i));
    }
    void abort_all() {
        for (uint32_t i = 0; i < ids_.size(); ++i)
            if (ids_[i] != 0 && unfinished_[i] > 0) engine_.abort(ids_[i]);
    }
    // Requests that arrive after this time, and those that would follow another one, do not take place.
    void drop_later_than(uint64_t now_ns) {
        for (uint32_t i = 0; i < ids_.size(); ++i)
            if (ids_[i] != 0 && unfinished_[i] > 0 && start_ + run_.requests[i].arrival_ns > now_ns)
                engine_.abort(ids_[i]);
        timed_.drop_rest();
        follow_ups_.drop_rest();
    }
    size_t finished() const { return finished_; }
    // Those that ended and that nothing waits for any more.
    std::vector<uint32_t> take_ended() { return std::exchange(ended_, {}); }
    size_t ended() const { return ended_.size(); }

  private:
    void add_after(uint32_t i, uint32_t before) {
        const RequestRecord& previous = run_.requests[before];
        if (!previous.completed()) {
            ended_.push_back(before);
            return refuse(i, "the request that it follows failed");
        }
        PlannedRequest planned = follow_ups_.make(i, before, previous.output);
        const uint64_t arrival_ns = previous.finish_ns + planned.think_ns;
        ended_.push_back(before);
        add(i, std::move(planned), arrival_ns);
    }

    void add(uint32_t i, PlannedRequest planned, uint64_t arrival_ns) { // since the start
        RequestRecord& record = run_.requests[i];
        record.others.resize(planned.sampling.n - 1);
        record.tenant = planned.tenant;
        record.priority = planned.priority;
        record.label = planned.label;
        record.arrival_ns = arrival_ns;
        record.deadline_ns = planned.deadline_ns + (planned.follows && planned.deadline_ns > 0 ? arrival_ns : 0);
        record.prompt_tokens = static_cast<uint32_t>(planned.prompt.size());
        unfinished_[i] = planned.sampling.n;
        follow_ups_.keep_prompt(i, planned.prompt);
        engine::Request request;
        request.prompt = std::move(planned.prompt);
        request.sampling = std::move(planned.sampling);
        request.arrival_ns = start_ + arrival_ns;
        request.deadline_ns = record.deadline_ns > 0 ? start_ + record.deadline_ns : 0;
        request.tenant = planned.tenant;
        request.priority = planned.priority;
        request.expected_output_tokens = planned.output_tokens;
        request.ends_after = planned.ends_after;
        // With candidates an output comes as a whole, in one step, whenever its tokens were made.
        const engine::SamplingParams& sampling = request.sampling;
        const bool as_made = sampling.beam_width == 0 && engine::sequences_of(sampling) == sampling.n;
        request.on_output = [this, i, as_made](const engine::RequestOutput& out) {
            take(run_.requests[i], out, start_);
            if (as_made) numbers_.got(out.tokens.size());
            if (out.finish != engine::FinishReason::kNone && --unfinished_[i] == 0) end(i);
            if (hooks_.on_output) hooks_.on_output(out);
        };
        const uint32_t outputs = unfinished_[i];
        const auto id = engine_.add_request(std::move(request));
        if (!id) return refuse(i, id.error());
        ids_[i] = *id;
        if (hooks_.on_request) hooks_.on_request(*id, start_ + arrival_ns, record.prompt_tokens, outputs);
    }
    void refuse(uint32_t i, const std::string& why) {
        run_.requests[i].finish = engine::FinishReason::kError;
        run_.requests[i].error = why;
        end(i);
    }
    void end(uint32_t i) {
        finished_ += 1;
        unfinished_[i] = 0;
        tally_.add_ended(run_.requests[i], run_.end);
        if (follow_ups_.has_next(i)) follow_ups_.finished(i);
        else ended_.push_back(i);
    }

    engine::SteppingEngine& engine_;
    const Requests& planned_;
    const DriveHooks& hooks_;
    RunRecord& run_;
    Tally& tally_;
    StepNumbers& numbers_;
    uint64_t start_;
    TimedRequests timed_;
    FollowUps follow_ups_;
    std::vector<uint32_t> unfinished_;   // outputs, by request
    std::vector<engine::RequestId> ids_; // 0: not added
    std::vector<uint32_t> ended_;
    size_t finished_ = 0;
};

// Hands over the rows of a run while it goes on, some at a time.
class RowStream {
  public:
    RowStream(Feed& feed, RunRecord& run, const DriveHooks& hooks) : feed_(feed), run_(run), hooks_(hooks) {}
    void look() {
        constexpr size_t kRows = 32;
        if (hooks_.on_rows && (run_.steps.size() >= kRows || feed_.ended() >= kRows)) send(feed_.take_ended());
    }
    void finish() { // those that did not end, too
        if (!hooks_.on_rows) return;
        send(feed_.take_ended());
        std::vector<uint32_t> rest;
        for (uint32_t i = 0; i < run_.requests.size(); ++i)
            if (!sent_[i]) rest.push_back(i);
        send(rest);
        run_.requests = std::vector<RequestRecord>();
        run_.steps = std::vector<engine::StepReport>();
    }

  private:
    void send(const std::vector<uint32_t>& requests) {
        sent_.resize(run_.requests.size());
        Rows rows;
        rows.steps.swap(run_.steps);
        for (const uint32_t i : requests) {
            sent_[i] = true;
            rows.requests.push_back({i, std::move(run_.requests[i])});
        }
        if (!rows.steps.empty() || !rows.requests.empty()) hooks_.on_rows(std::move(rows));
    }

    Feed& feed_;
    RunRecord& run_;
    const DriveHooks& hooks_;
    std::vector<bool> sent_;
};

// Those with a time of their own are made at once, each to be taken once.
class MadeAhead final : public Requests {
  public:
    explicit MadeAhead(const Requests& given) : given_(given), made_(given.size()) {
        for (uint32_t i = 0; i < given.size(); ++i)
            if (!given.follows(i)) made_[i] = given.make(i);
    }
    uint32_t size() const override { return given_.size(); }
    uint64_t arrival_ns(uint32_t i) const override { return given_.arrival_ns(i); }
    std::optional<uint32_t> follows(uint32_t i) const override { return given_.follows(i); }
    PlannedRequest make(uint32_t i) const override {
        return given_.follows(i) ? given_.make(i) : std::move(made_[i]);
    }
    bool any_grammar() const {
        return std::ranges::any_of(made_, [](const auto& r) { return r.sampling.structured_outputs.has_value(); });
    }

  private:
    const Requests& given_;
    mutable std::vector<PlannedRequest> made_;
};

constexpr uint64_t kHeadStart = 1'000'000; // ns

// Time 0 for requests that are all added before it: some times what adding them takes, since it must not be past when
// the first of them arrives.
uint64_t start_after_adding(const MadeAhead& made, uint64_t making_ns, uint64_t now_ns) {
    constexpr uint64_t kOfEach = 20'000, kOfGrammar = 1'000'000'000;
    return now_ns + kHeadStart + making_ns + made.size() * kOfEach + (made.any_grammar() ? kOfGrammar : 0);
}

}  // namespace

void drive(engine::SteppingEngine& engine, Clock& clock, const Requests& given, const DriveHooks& hooks,
           RunRecord& run) {
    const bool ahead = hooks.feeding == Feeding::kAhead;
    const uint64_t called_ns = clock.now_ns();
    std::optional<MadeAhead> made;
    if (ahead) made.emplace(given);
    const Requests& planned = made ? static_cast<const Requests&>(*made) : given;
    const uint64_t now_ns = clock.now_ns(), stands_still = now_ns + kHeadStart + planned.size() * 1'000;
    const uint64_t start = made ? start_after_adding(*made, now_ns - called_ns, now_ns) : stands_still;
    Tally tally;
    StepNumbers numbers;
    Feed feed(engine, planned, hooks, run, tally, numbers, start);
    RowStream rows(feed, run, hooks);
    feed.add_by_time(ahead ? ~uint64_t{0} : clock.now_ns());
    if (hooks.on_start) hooks.on_start(start);
    const auto go_on = [&] {
        if (hooks.between_steps) hooks.between_steps();
        if (run.end != RunEnd::kInterrupted && hooks.draining && hooks.draining()) {
            run.end = RunEnd::kInterrupted;
            feed.drop_later_than(clock.now_ns());
        }
        if (ahead) feed.add_due();
        else feed.add_by_time(clock.now_ns());
        rows.look();
        if (!engine.has_unfinished() || !hooks.interrupted || !hooks.interrupted()) return true;
        run.end = RunEnd::kInterrupted;
        feed.abort_all();
        return false;
    };
    const auto keep = [&](engine::StepReport& report) {
        if (hooks.on_step) hooks.on_step(report, feed.finished());
        report.start_ns = since(report.start_ns, start);
        report.end_ns = since(report.end_ns, start);
        tally.add(report);
        if (report.end_ns >= hooks.counted.from_ns && report.start_ns <= hooks.counted.until_ns) numbers.add(report);
        else numbers.leave_out();
        run.steps.push_back(report);
    };
    if (const auto done = service::run_to_end(engine, {go_on, keep}); !done) {
        run.end = RunEnd::kFailed;
        run.faults.push_back(done.error());
    }
    tally.write(run);
    run.numbers = numbers.numbers();
    rows.finish();
}

}  // namespace patchbay::experiment
