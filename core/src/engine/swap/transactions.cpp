#include "engine/swap/transactions.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "config/engine_config.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/swap/swap_journal.hpp"
#include "host/slot.hpp"

namespace patchbay::engine {

Failure failed_by(const host::SwapRecord& r) {
    return fail(r.code, r.exchange() + " was " + std::string(name_of(r.state)) +
                            " in phase " + r.phase + ": " + r.reason);
}

void Transactions::post(std::vector<Member> members, uint64_t not_before_ns) {
    const std::lock_guard lock(mutex_);
    for (const Member& m : members) {
        m.port->slot().line().post(m.swap, not_before_ns);
        const host::SwapRecord r = m.swap->record();
        if (r.state != host::SwapState::kRefused) continue;
        for (const Member& other : members) other.port->slot().line().withdraw(other.swap, kTogether, failed_by(r));
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
    const auto waits = [](const Transaction& t) { return computes(t) && t.warm == t.members.size(); };
    return std::ranges::any_of(candidates_, waits);
}

void Transactions::take_due() {
    const std::lock_guard lock(mutex_);
    for (auto t = posted_.begin(); t != posted_.end();) {
        if (!is_due(*t)) {
            ++t;
            continue;
        }
        for (const Member& m : t->members) m.port->slot().take();
        candidates_.push_back(std::move(*t));
        t = posted_.erase(t);
    }
    any_posted_ = !posted_.empty();
}

void Transactions::at_boundary(bool in_flight) {
    if (any_posted_) take_due();
    if (candidates_.empty()) return;
    std::vector<Transaction> still;
    for (Transaction& t : candidates_) {
        if (!warm_up(t)) continue;
        const bool enters = t.warm == t.members.size() && !(in_flight && computes(t));
        if (enters) begin(std::move(t));
        else still.push_back(std::move(t));
    }
    candidates_ = std::move(still);
    settle();
}

// The next portion for the first one that does not know all; false: all are refused.
bool Transactions::warm_up(Transaction& t) {
    for (; t.warm < t.members.size(); ++t.warm) {
        const Member& m = t.members[t.warm];
        const uint64_t start = clock_.now_ns();
        const Result<bool> knows_all = m.port->warm_up(*m.port->slot().candidate());
        if (!knows_all) {
            turn_away(t, m, m.port->serves_phase(), knows_all.failure());
            return false;
        }
        if (*knows_all) continue;
        m.port->slot().note_pause(clock_.now_ns() - start);
        return true;
    }
    return true;
}

void Transactions::turn_away(const Transaction& t, const Member& because, const std::string& phase,
                             const Failure& why) {
    const host::SwapRecord refused = because.port->slot().turn_away(context_.step, phase, why);
    journal_.note(refused);
    for (const Member& other : t.members)
        if (other.port != because.port)
            journal_.note(other.port->slot().turn_away(context_.step, kTogether, failed_by(refused)));
}

// Of all, before any takes its slot. False: all are refused.
bool Transactions::hand_over(const Transaction& t) {
    for (const Member& m : t.members) {
        std::string phase;
        if (const Result<> done = m.port->slot().hand_over(phase); !done) {
            turn_away(t, m, phase, done.failure());
            return false;
        }
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
    for (const Member& m : t.members) // but for one that failed while another one entered: all go back with it
        if (m.port->slot().transaction() == t.number)
            journal_.note(m.port->slot().begin_probation(context_.step, settings_.probation_steps, start));
    on_probation_.push_back(std::move(t));
    for (const Member& m : on_probation_.back().members)
        if (const Result<> served = m.port->serves(); !served) {
            m.port->roll_back(m.port->serves_phase(), served.failure());
            return;
        }
}

// In the other order than they took their slots.
void Transactions::roll_back_rest(const Transaction& t) {
    Failure cause = fail("another one of the transaction was rolled back");
    for (const host::SwapRecord& r : context_.report.swaps)
        if (r.transaction == t.number && r.state == host::SwapState::kRolledBack) cause = failed_by(r);
    for (auto m = t.members.rbegin(); m != t.members.rend(); ++m)
        if (m->port->slot().transaction() == t.number) m->port->roll_back(kTogether, cause);
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
