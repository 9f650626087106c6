#include "engine/swap/transactions.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

namespace patchbay::engine {

std::string failed_by(const host::SwapRecord& r) {
    return r.kind + " " + r.from.name + "→" + r.to.name + " was " + std::string(name_of(r.state)) + " in phase " +
           r.phase + ": " + r.reason;
}

void Transactions::post(std::vector<Member> members, uint64_t not_before_ns) {
    const std::lock_guard lock(mutex_);
    for (const Member& m : members) {
        m.port->slot().post(m.swap, not_before_ns);
        const host::SwapRecord r = m.swap->record();
        if (r.state != host::SwapState::kRefused) continue;
        for (const Member& other : members) other.port->slot().withdraw(other.swap, kTogether, failed_by(r));
        return;
    }
    const uint64_t number = members.front().swap->record().transaction;
    posted_.push_back({number, std::move(members)});
    any_posted_ = true;
}

bool Transactions::computes(const Transaction& t) {
    return std::ranges::any_of(t.members, [](const Member& m) { return m.port->computes(); });
}

bool Transactions::is_due(const Transaction& t) {
    return std::ranges::all_of(t.members, [&](const Member& m) { return m.port->slot().due() == t.number; });
}

bool Transactions::waits_for_steps() const {
    if (!any_posted_) return false;
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(posted_, [](const Transaction& t) { return computes(t) && is_due(t); });
}

std::vector<Transactions::Transaction> Transactions::take_due(bool in_flight) {
    std::vector<Transaction> out;
    const std::lock_guard lock(mutex_);
    for (auto t = posted_.begin(); t != posted_.end();) {
        if ((in_flight && computes(*t)) || !is_due(*t)) {
            ++t;
            continue;
        }
        for (const Member& m : t->members) m.port->slot().take();
        out.push_back(std::move(*t));
        t = posted_.erase(t);
    }
    any_posted_ = !posted_.empty();
    return out;
}

void Transactions::at_boundary(bool in_flight) {
    if (!any_posted_) return;
    for (Transaction& t : take_due(in_flight)) begin(std::move(t));
    settle();
}

// Of all, before any takes its slot. False: all are refused.
bool Transactions::hand_over(const Transaction& t) {
    for (const Member& m : t.members) {
        std::string phase;
        const Result<> done = m.port->slot().hand_over(phase);
        if (done) continue;
        const host::SwapRecord refused = m.port->slot().turn_away(context_.step, phase, done.error());
        journal_.note(refused);
        for (const Member& other : t.members)
            if (other.port != m.port)
                journal_.note(other.port->slot().turn_away(context_.step, kTogether, failed_by(refused)));
        return false;
    }
    return true;
}

void Transactions::begin(Transaction t) {
    const uint64_t start = clock_.now_ns();
    if (!hand_over(t)) return;
    for (const Member& m : t.members) {
        m.port->slot().let_in();
        m.port->enter();
    }
    for (const Member& m : t.members)
        journal_.note(m.port->slot().begin_probation(context_.step, settings_.probation_steps, start));
    on_probation_.push_back(std::move(t));
    for (const Member& m : on_probation_.back().members)
        if (const Result<> served = m.port->serves(); !served) {
            m.port->roll_back(m.port->serves_phase(), served.error());
            return;
        }
}

// In the other order than they took their slots.
void Transactions::roll_back_rest(const Transaction& t) {
    std::string cause = "another one of the transaction was rolled back";
    for (const host::SwapRecord& r : context_.report.swaps)
        if (r.transaction == t.number && r.state == host::SwapState::kRolledBack) cause = failed_by(r);
    for (const Member& m : std::views::reverse(t.members))
        if (m.port->slot().transaction() == t.number) m.port->roll_back(kTogether, cause);
}

// One leaves its slot only by a rollback, as long as its transaction is on probation.
void Transactions::settle() {
    std::erase_if(on_probation_, [&](const Transaction& t) {
        const auto inside = [&](const Member& m) { return m.port->slot().transaction() == t.number; };
        if (!std::ranges::all_of(t.members, inside)) {
            roll_back_rest(t);
            return true;
        }
        if (std::ranges::any_of(t.members, [](const Member& m) { return m.port->slot().steps_left() > 0; }))
            return false;
        for (const Member& m : t.members) {
            m.port->commit();
            journal_.note(m.port->slot().commit(context_.step));
        }
        return true;
    });
}

}  // namespace patchbay::engine
