#include "engine/scheduling/scheduler_port.hpp"

#include <algorithm>
#include <utility>

#include "config/engine_config.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/request/finish_reasons.hpp"
#include "engine/request/sequence.hpp"
#include "engine/request/sequences.hpp"
#include "engine/scheduling/scheduler_view.hpp"
#include "engine/swap/swap_journal.hpp"

namespace patchbay::engine {

SchedulerPort::SchedulerPort(const config::EngineSettings& settings, const Sequences& sequences, Clock& clock,
                             StepContext& context, SwapJournal& journal)
    : settings_(settings), sequences_(sequences), clock_(clock), context_(context), journal_(journal),
      slot_("scheduler", host::UnreadState::kStartsEmpty, clock) {}

std::string SchedulerPort::text() const { return "scheduler '" + std::string(slot_.current().type().name) + "'"; }

void SchedulerPort::arrived(const pb_sequence& record) {
    slot_.each([&](const host::Component& c) {
        if (host::table_of<pb_scheduler>(c).arrived)
            host::call<&pb_scheduler::arrived>(c, &record, uint32_t{sizeof(pb_sequence)});
    });
}

void SchedulerPort::finished(const Sequence& s) {
    const pb_finished said{sizeof said, info_of(s.output.delta.finish).for_scheduler, s.id, s.outputs(), 0};
    slot_.each([&](const host::Component& c) {
        if (host::table_of<pb_scheduler>(c).finished) host::call<&pb_scheduler::finished>(c, &said);
    });
}

void SchedulerPort::resync(const host::Component& c) {
    if (!host::table_of<pb_scheduler>(c).resync) return;
    pb_scheduler_in in = view_->show_all(context_.step);
    in.now_us = clock_.now_ns() / 1000;
    host::call<&pb_scheduler::resync>(c, &in);
}

bool SchedulerPort::roll_back(const std::string& phase, const Failure& why) {
    if (!slot_.previous()) return false;
    host::SwapRecord record = slot_.roll_back(context_.step, phase, why);
    resync(slot_.current());
    journal_.note(std::move(record));
    return true;
}

bool SchedulerPort::give_up(const std::string& reason) {
    const SwapJournal::AfterCalls after(journal_);
    return roll_back("plan", fail(reason));
}

Result<> SchedulerPort::plan() {
    constexpr uint32_t kMaxBadPlansInARow = 8;
    Result<> done = ask();
    if (!done && roll_back("plan", done.failure())) done = ask();
    if (done) {
        bad_plans_ = 0;
        return {};
    }
    plan_ = {};
    context_.report.calls.plan_faults += 1;
    context_.report.calls.plan_breaches += returned_ ? 1 : 0;
    if (++bad_plans_ >= kMaxBadPlansInARow)
        return fail(done.code(), done.error() + " (" + std::to_string(kMaxBadPlansInARow) + " bad plans in a row)");
    return {};
}

Result<> SchedulerPort::ask() {
    pb_scheduler_in in = view_->show(context_.step);
    const auto running = static_cast<uint32_t>(sequences_.running().size());
    items_.assign(settings_.max_num_seqs, {}); // what a policy does not write is 0
    preempts_.assign(std::max<size_t>(running, 1), {});
    pb_scheduler_out out{sizeof(pb_scheduler_out), sizeof(pb_plan_item), static_cast<uint32_t>(items_.size()),
                         sizeof(pb_preempt_item), items_.data(), 0, running, preempts_.data(), 0, 0};
    const uint64_t start = clock_.now_ns();
    in.now_us = start / 1000;
    const Result<> done = host::checked<&pb_scheduler::plan>(slot_.current(), &in, &out);
    context_.report.calls.plan_ns += clock_.now_ns() - start;
    returned_ = bool(done);
    PB_CHECK(done);
    return check(out);
}

// Of those that were shown; plans mostly name them in the order in which they run, from `hint` on.
Sequence* SchedulerPort::find_shown(RequestId id, size_t& hint) const {
    const auto running = sequences_.running();
    if (hint < running.size() && running[hint]->id == id) return running[hint++];
    Sequence* const s = sequences_.find(id);
    const bool shown = s && (s->place == Place::kWaiting || s->place == Place::kRunning);
    return shown ? s : nullptr;
}

Result<> SchedulerPort::check(const pb_scheduler_out& out) {
    const auto breach = [&](const std::string& what) { return fail(text() + " " + what); };
    if (out.item_count > out.item_capacity || out.preempt_count > out.preempt_capacity)
        return breach("wrote past its buffers");
    named_.clear();
    plan_.items.clear();
    plan_.preemptions.clear();
    size_t hint = 0;
    for (uint32_t i = 0; i < out.preempt_count; ++i) {
        const uint64_t id = preempts_[i].id;
        Sequence* s = find_shown(id, hint);
        if (!s || s->place != Place::kRunning)
            return breach("preempts " + std::to_string(id) + ", which is not running");
        named_.push_back(id);
        plan_.preemptions.push_back({s, id, static_cast<pb_preemption>(preempts_[i].how)});
    }
    uint64_t tokens = 0, stay = sequences_.running().size() - out.preempt_count;
    hint = 0;
    for (uint32_t i = 0; i < out.item_count; ++i) {
        const uint64_t id = items_[i].id;
        Sequence* s = find_shown(id, hint);
        if (!s) return breach("plans " + std::to_string(id) + ", which it was not shown");
        named_.push_back(id);
        if (items_[i].tokens == 0) return breach("plans no tokens for " + std::to_string(id));
        tokens += items_[i].tokens;
        stay += s->place == Place::kWaiting;
        plan_.items.push_back({s, items_[i].tokens});
    }
    std::ranges::sort(named_);
    if (const auto twice = std::ranges::adjacent_find(named_); twice != named_.end())
        return breach("names " + std::to_string(*twice) + " twice");
    if (tokens > settings_.max_num_batched_tokens)
        return breach("plans " + std::to_string(tokens) + " tokens, more than max_num_batched_tokens of " +
                      std::to_string(settings_.max_num_batched_tokens));
    if (stay > settings_.max_num_seqs)
        return breach("has " + std::to_string(stay) + " sequences running, more than max_num_seqs of " +
                      std::to_string(settings_.max_num_seqs));
    return {};
}

}  // namespace patchbay::engine
