#include "serve/slot_journal.hpp"

#include <utility>

#include "config/slots.hpp"

namespace patchbay::serve {

const SlotStatus* JournalState::slot(std::string_view kind) const {
    for (const SlotStatus& s : slots)
        if (s.identity.kind == kind) return &s;
    return nullptr;
}

bool JournalState::knows(const host::SwapRecord& r) const { return step >= (r.settled() ? r.end_step : r.step); }

SlotJournal::SlotJournal(const std::vector<host::Identity>& at_first, const config::EngineConfig& made_of)
    : generations_(at_first.size(), 1) {
    for (const host::Identity& identity : at_first) {
        const config::SlotInfo* const slot = config::find_slot(identity.kind);
        const config::PluginChoice* const choice = slot ? slot->of(made_of) : nullptr;
        state_.slots.push_back({.identity = identity, .params = choice ? choice->settings : host::Settings{}});
    }
    replaced_ = state_.slots;
}

SlotStatus SlotJournal::set(std::string_view kind, const host::Settings& params) {
    const std::lock_guard lock(mutex_);
    for (SlotStatus& slot : state_.slots) {
        if (slot.identity.kind != kind) continue;
        slot.params = params;
        return slot;
    }
    return {};
}

void SlotJournal::on_step(const engine::StepReport& report) {
    {
        const std::lock_guard lock(mutex_);
        state_.steps += 1;
        state_.step = report.step;
        state_.idle = report.queues.running_requests + report.queues.waiting_requests == 0;
        for (const host::SwapRecord& r : report.swaps) note(r);
    }
    stepped_.notify_all();
}

void SlotJournal::note(const host::SwapRecord& r) {
    for (size_t i = 0; i < state_.slots.size(); ++i) {
        SlotStatus& slot = state_.slots[i];
        if (slot.identity.kind != r.kind) continue;
        if (r.state == host::SwapState::kOnProbation) {
            replaced_[i] = std::exchange(slot, {r.to, ++generations_[i], true, r.step, r.from.name, r.settings});
        } else if (r.state == host::SwapState::kRolledBack) {
            slot = replaced_[i];
        } else if (r.state == host::SwapState::kCommitted) {
            slot.on_probation = false;
            slot.predecessor.clear();
        }
    }
    if (!r.settled()) return;
    state_.swaps.push_front(r);
    if (state_.swaps.size() > kMaxSwaps) state_.swaps.pop_back();
}

JournalState SlotJournal::state() const {
    const std::lock_guard lock(mutex_);
    return state_;
}

bool SlotJournal::wait_for_step(uint64_t after) const {
    std::unique_lock lock(mutex_);
    stepped_.wait(lock, [&] { return closed_ || state_.steps > after; });
    return !closed_;
}

void SlotJournal::close() {
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
    }
    stepped_.notify_all();
}

}  // namespace patchbay::serve
