#include "engine/scheduling/scheduler_port.hpp"

#include <algorithm>
#include <utility>

#include "engine/loop/step_context.hpp"
#include "engine/request/finish_reasons.hpp"
#include "engine/request/sequence.hpp"
#include "engine/scheduling/scheduler_view.hpp"
#include "engine/swap/swap_journal.hpp"

namespace patchbay::engine {

SchedulerPort::SchedulerPort(const config::EngineSettings& settings, const Sequences& sequences, Clock& clock,
                             StepContext& context, SwapJournal& journal)
    : clock_(clock), context_(context), journal_(journal), slot_("scheduler", host::UnreadState::kStartsEmpty, clock),
      check_(settings, sequences) {}

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
    items_.assign(in.max_num_seqs, {}); // what a policy does not write is 0
    preempts_.assign(std::max(in.running_count, 1u), {});
    pb_scheduler_out out{sizeof(pb_scheduler_out), sizeof(pb_plan_item), in.max_num_seqs, sizeof(pb_preempt_item),
                         items_.data(), 0, in.running_count, preempts_.data(), 0, 0};
    const uint64_t start = clock_.now_ns();
    in.now_us = start / 1000;
    const Result<> done = host::checked<&pb_scheduler::plan>(slot_.current(), &in, &out);
    context_.report.calls.plan_ns += clock_.now_ns() - start;
    returned_ = bool(done);
    PB_CHECK(done);
    const bool past = out.item_count > in.max_num_seqs || out.preempt_count > in.running_count;
    const Result<> read = past ? fail("wrote past its buffers")
                               : check_.read(std::span(items_).first(out.item_count),
                                             std::span(preempts_).first(out.preempt_count), plan_);
    if (!read) return fail(read.code(), text() + " " + read.error());
    return {};
}

}  // namespace patchbay::engine
