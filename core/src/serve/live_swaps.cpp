#include "serve/live_swaps.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

#include "base/crash_report.hpp"

namespace patchbay::serve {
namespace {

Failure stopped() { return fail(StatusCode::kUnavailable, "the engine was stopped before the swap had ended"); }

std::vector<PendingSwap> parts_of(const SwapOrder& order, const char* state) {
    std::vector<PendingSwap> out;
    for (const SwapOrder::Part& p : order.parts) out.push_back({std::string(name_of(p.slot)), p.choice.plugin, state});
    return out;
}

}  // namespace

LiveSwaps::LiveSwaps(service::LiveEngine& engine, SlotJournal& journal, std::shared_ptr<SlotLedger> ledger,
                     ModelReplacement* replacement, uint64_t probation_steps)
    : engine_(engine), journal_(journal), ledger_(std::move(ledger)), replacement_(replacement),
      max_awaited_steps_(probation_steps + kUncalledSteps), thread_([this] { loop(); }) {}

LiveSwaps::~LiveSwaps() { stop(); }

Result<> LiveSwaps::add(SwapOrder order) {
    {
        const std::lock_guard lock(mutex_);
        if (stopped_) return stopped();
        if (queue_.size() >= kMaxQueued)
            return fail(StatusCode::kExhausted, std::to_string(kMaxQueued) + " swaps are queued, no more fit now");
        queue_.push_back(std::move(order));
    }
    added_.notify_one();
    return {};
}

std::vector<PendingSwap> LiveSwaps::pending(uint64_t reported_step) {
    std::vector<PendingSwap> out;
    std::list<Posted> posted;
    {
        const std::lock_guard lock(mutex_);
        posted = posted_;
    }
    for (const Posted& p : posted) { // without the lock: what came out of a slot is destroyed here
        const host::SwapRecord r = p.swap->record();
        if (!r.settled() || r.end_step > reported_step)
            out.push_back({r.kind, p.plugin, std::string(name_of(r.state))});
    }
    const std::lock_guard lock(mutex_);
    out.insert(out.end(), preparing_.begin(), preparing_.end());
    for (const SwapOrder& order : queue_)
        for (const PendingSwap& p : parts_of(order, "queued")) out.push_back(p);
    return out;
}

void LiveSwaps::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
    }
    added_.notify_one();
    journal_.close();
    if (thread_.joinable()) thread_.join();
}

void LiveSwaps::loop() {
    const SignalStack stack;
    while (true) {
        SwapOrder order;
        {
            std::unique_lock lock(mutex_);
            added_.wait(lock, [&] { return stopped_ || !queue_.empty(); });
            if (queue_.empty()) return;
            order = std::move(queue_.front());
            queue_.pop_front();
            if (!stopped_) preparing_ = parts_of(order, "preparing");
        }
        if (preparing_.empty()) {
            order.done(stopped());
            continue;
        }
        try {
            perform(order);
        } catch (const std::exception& e) { // as without memory
            {
                const std::lock_guard lock(mutex_);
                preparing_.clear();
            }
            order.done(fail(StatusCode::kInternal, e.what()));
        }
    }
}

// What crashes in its first call must be known before it is let in. A checkpoint goes by its path.
Result<> LiveSwaps::note(const SwapOrder& order, bool new_engine) {
    if (!ledger_) return {};
    std::vector<std::string> digests;
    for (const SwapOrder::Part& p : order.parts) {
        const auto found = order.registry->find(name_of(p.slot), p.choice.plugin);
        digests.push_back(p.slot == engine::SwapSlot::kModel ? p.choice.plugin
                          : found                            ? order.registry->plugin_of(**found)->sha256
                                                             : "");
        if (ledger_->culprit(digests.back()))
            return fail(StatusCode::kInvalid, std::string(name_of(p.slot)) + " '" + p.choice.plugin + "' (" +
                                                  digests.back() + ") has ended this server before, and is refused");
    }
    for (size_t i = 0; i < digests.size(); ++i)
        ledger_->begin(name_of(order.parts[i].slot), order.parts[i].choice, digests[i], new_engine);
    return {};
}

void LiveSwaps::perform(const SwapOrder& order) {
    std::vector<engine::SwapRequest> requests;
    for (const SwapOrder::Part& p : order.parts) requests.push_back({p.slot, p.choice, *order.registry, prober_});
    const bool new_engine = needs_new_engine(requests);
    if (const Result<> noted = note(order, new_engine); !noted) {
        const std::lock_guard lock(mutex_);
        preparing_.clear();
        return order.done(noted.failure());
    }
    if (new_engine) return replace_model(order);
    const auto swaps = engine_.swap_together(requests);
    {
        const std::lock_guard lock(mutex_);
        preparing_.clear();
        posted_.remove_if([](const Posted& p) { return p.swap.use_count() == 1; }); // the slot has let go of it
        for (size_t i = 0; i < swaps.size(); ++i) posted_.push_back({order.parts[i].choice.plugin, swaps[i]});
    }
    order.done(outcome_of(swaps));
}

bool LiveSwaps::needs_new_engine(const std::vector<engine::SwapRequest>& requests) {
    return replacement_ && requests.size() == 1 && requests.front().slot == engine::SwapSlot::kModel &&
           replacement_->is_needed(requests.front());
}

// What was on probation in the engine that goes stays in the one that comes: nothing of it is pending any more.
void LiveSwaps::replace_model(const SwapOrder& order) {
    const auto record = replacement_->replace(order.parts.front().choice.plugin, *order.registry, [this] {
        const std::lock_guard lock(mutex_);
        for (PendingSwap& p : preparing_) p.state = "draining";
    });
    std::list<Posted> gone; // destroyed without the lock
    {
        const std::lock_guard lock(mutex_);
        preparing_.clear();
        if (record && record->state == host::SwapState::kCommitted) gone.swap(posted_);
    }
    if (record) order.done(std::vector{*record});
    else order.done(record.failure());
}

// Kinds whose swaps wait for steps that may be long in coming: their slot is on probation, or an earlier swap of theirs
// waits in a transaction beside another one that does.
std::set<std::string> LiveSwaps::held_slots(const JournalState& now) {
    std::set<std::string> held;
    for (const SlotStatus& slot : now.slots)
        if (slot.on_probation && (now.idle || now.step >= slot.since_step + max_awaited_steps_))
            held.insert(slot.identity.kind);
    std::list<Posted> posted;
    {
        const std::lock_guard lock(mutex_);
        posted = posted_;
    }
    std::map<uint64_t, std::vector<std::string>> waiting; // kinds by transaction, as they were posted
    for (const Posted& p : posted) { // without the lock: what came out of a slot is destroyed here
        const host::SwapRecord r = p.swap->record();
        if (r.state == host::SwapState::kPosted && r.transaction > 0) waiting[r.transaction].push_back(r.kind);
    }
    for (const auto& [transaction, kinds] : waiting)
        if (std::ranges::any_of(kinds, [&](const std::string& kind) { return held.contains(kind); }))
            held.insert(kinds.begin(), kinds.end());
    return held;
}

Result<std::vector<host::SwapRecord>> LiveSwaps::outcome_of(const std::vector<std::shared_ptr<host::Swap>>& swaps) {
    while (true) {
        const JournalState now = journal_.state(); // before the records, which may so be further, never less far
        const std::set<std::string> held = held_slots(now);
        std::vector<host::SwapRecord> records;
        bool settled = true, waits = false, known = true; // so that who is answered sees it in /status
        for (const auto& swap : swaps) {
            const host::SwapRecord& r = records.emplace_back(swap->record());
            settled = settled && r.settled();
            known = known && now.knows(r);
            waits = waits || (!r.settled() && held.contains(r.kind));
        }
        if (known && (settled || waits)) return records;
        if (journal_.wait_for_step(now.steps)) continue;
        for (size_t i = 0; i < swaps.size(); ++i) records[i] = swaps[i]->record();
        const auto took_place = [](const host::SwapRecord& r) { return r.state >= host::SwapState::kOnProbation; };
        if (std::ranges::any_of(records, took_place)) return records; // the last step may have been too late to wake us
        return stopped();
    }
}

}  // namespace patchbay::serve
