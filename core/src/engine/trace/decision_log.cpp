#include "engine/trace/decision_log.hpp"

#include <nlohmann/json.hpp>

#include "engine/placement/placed.hpp"
#include "engine/request/sequence.hpp"
#include "engine/request/sequences.hpp"
#include "engine/scheduling/scheduler_port.hpp"
#include "engine/step_report.hpp"
#include "execution/sync_reasons.hpp"
#include "kv/block_pool.hpp"

namespace patchbay::engine {

using Json = nlohmann::ordered_json;

void DecisionLog::on_planned(const StepPlan& plan) {
    items_.clear();
    for (const StepPlan::Item& item : plan.items) {
        const Sequence& s = *item.sequence;
        items_.push_back({s.id, s.group, item.tokens, 0, s.computed + s.in_flight.tokens, s.drafts,
                          s.confirmed() + s.in_flight.placeholders, s.place == Place::kWaiting});
    }
    preemptions_ = plan.preemptions;
    scheduler_ = sources_.scheduler.slot().current().type().name;
    running_ = sources_.sequences.running().size();
    waiting_ = sources_.sequences.waiting().records().size();
    free_pages_ = sources_.pages.free();
}

void DecisionLog::on_placed(const std::vector<Placed>& placed) { // in the order of the plan
    auto item = items_.begin();
    for (const Placed& p : placed) {
        while (item != items_.end() && item->id != p.sequence->id) ++item;
        if (item == items_.end()) return;
        item->placed = p.tokens;
    }
}

void DecisionLog::on_end(const StepReport& r) {
    if (running_ + waiting_ == 0) return;
    Json plan = Json::array(), preempt = Json::array();
    for (const Item& item : items_) {
        Json one = {{"id", item.id}};
        if (item.group != item.id) one["request"] = item.group;
        one.update({{"tokens", item.tokens}, {"computed", item.computed}, {"known", item.known}});
        if (item.drafts > 0) one["drafts"] = item.drafts;
        if (item.waited) one["from"] = "waiting";
        if (item.placed < item.tokens) one["placed"] = item.placed;
        plan.push_back(std::move(one));
    }
    for (const StepPlan::Preemption& p : preemptions_) {
        const bool swap = p.how == PB_PREEMPT_SWAP;
        preempt.push_back({{"id", p.id}, {"how", swap ? "swap" : "recompute"}});
    }
    Json line = {{"step", r.step}, {"start_ms", file_->time_ms(r.start_ns)}, {"end_ms", file_->time_ms(r.end_ns)},
                 {"scheduler", scheduler_}, {"running", running_}, {"waiting", waiting_},
                 {"free_pages", free_pages_}, {"plan", std::move(plan)}};
    if (!preempt.empty()) line["preempt"] = std::move(preempt);
    if (r.preemption.swapped_out > 0) line["swapped_out"] = r.preemption.swapped_out;
    if (!r.sync_reason.empty() && r.sync_reason != execution::sync_reason::kOff)
        line["waited_for_step_before"] = r.sync_reason;
    if (r.calls.plan_faults > 0) line["refused_plans"] = r.calls.plan_faults;
    if (r.kv.evicted_pages > 0)
        line["evicted_pages"] = {{"all", r.kv.evicted_pages}, {"chosen_by_kv_policy", r.kv.chosen_evictions}};
    if (r.drafts.drafted_tokens > 0)
        line["drafts"] = {{"verified", r.drafts.drafted_tokens}, {"accepted", r.drafts.accepted_tokens}};
    line["finished"] = r.work.finished;
    file_->write(std::move(line));
}

}  // namespace patchbay::engine
