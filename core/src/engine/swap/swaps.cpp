#include "engine/swap/swaps.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "config/engine_config.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/swap/swap_journal.hpp"
#include "host/slot.hpp"

namespace patchbay::engine {
namespace {

struct Deadline { // of a call on probation
    uint64_t ms;
    const char* key;
};

// A component may have one of its own: its setting max_call_ms, if its schema has one and it is not 0.
Deadline deadline_of(const host::Component& component, const config::SwapSettings& settings) {
    const host::Settings own = component.settings();
    if (const auto given = own.find("max_call_ms"); given != own.end())
        if (const uint64_t ms = std::strtoull(given->second.c_str(), nullptr, 10); ms > 0)
            return {ms, "its own max_call_ms"};
    return {settings.max_call_ms, "max_call_ms"};
}

}  // namespace

void Swaps::exchange(SwapPort& port) {
    host::Slot& slot = port.slot();
    for (host::SwapRecord& r : slot.line().take_reports()) p_.journal.note_refusal(std::move(r));
    if (slot.due() == uint64_t{0}) slot.take();
    const host::Component* const next = slot.candidate();
    if (!next || slot.transaction() > 0) return; // that is the transaction's
    const uint64_t start = p_.clock.now_ns();
    if (const Result<bool> knows_all = port.warm_up(*next); !knows_all) {
        return p_.journal.note(slot.turn_away(p_.context.step, port.serves_phase(), knows_all.failure()));
    } else if (!*knows_all) {
        return slot.note_pause(p_.clock.now_ns() - start);
    }
    host::SwapRecord record = host::enter(slot, p_.context.step, p_.settings.probation_steps, start,
                                          [&](const host::Component&) { port.enter(); });
    const bool entered = record.state == host::SwapState::kOnProbation;
    p_.journal.note(std::move(record));
    if (!entered) return;
    if (const Result<> served = port.serves(); !served) port.roll_back(port.serves_phase(), served.failure());
}

void Swaps::at_boundary(bool in_flight) {
    for (SwapPort* port : p_.ports)
        if (!in_flight || !port->computes()) exchange(*port);
    transactions_.at_boundary(in_flight);
}

bool Swaps::waits_for_steps() const {
    return transactions_.waits_for_steps() || std::ranges::any_of(p_.ports, [](SwapPort* port) {
               return port->computes() && port->slot().due() == uint64_t{0};
           });
}

bool Swaps::needs_boundary() const {
    return waits_for_steps() || transactions_.any_candidate() || std::ranges::any_of(p_.ports, [](SwapPort* port) {
               return port->slot().candidate() && port->slot().transaction() == 0;
           });
}

bool Swaps::can_recover() const {
    return std::ranges::any_of(p_.ports, [](SwapPort* port) { return port->computes() && port->slot().previous(); });
}

// Where several are on probation, the one that the failure names goes back.
bool Swaps::recover(const Failure& why) {
    const auto is_named = [&](SwapPort* port) {
        return port->slot().filled() && why.text.find(port->slot().current().label()) != why.text.npos;
    };
    for (const bool named : {true, false})
        for (SwapPort* port : p_.ports)
            if (port->computes() && (!named || is_named(port)) && port->roll_back("run", why)) return true;
    return false;
}

bool Swaps::step_may_be_redone() const {
    return std::ranges::any_of(p_.ports,
                               [](SwapPort* port) { return port->redoes_steps() && port->slot().previous(); });
}

void Swaps::end_step(SwapPort& port, const SwapPort::StepUse& use) {
    if (!port.slot().previous()) return;
    const SwapPort::StepCall call = port.call_of(use);
    if (!port.slot().previous()) return; // that call has failed
    const Deadline deadline = deadline_of(port.slot().current(), p_.settings);
    if (deadline.ms > 0 && call.ns > deadline.ms * 1'000'000) {
        port.roll_back("time", fail(std::string(call.name) + " took " + std::to_string(call.ns / 1'000'000) +
                                    " ms, more than " + deadline.key + " of " + std::to_string(deadline.ms)));
        return;
    }
    if (!call.made) return;
    port.slot().count_step();
    if (port.slot().steps_left() > 0 || port.slot().transaction() > 0) return;
    port.commit();
    p_.journal.note(port.slot().commit(p_.context.step));
}

void Swaps::end_step(const SwapPort::StepUse& use) {
    const SwapJournal::AfterCalls after(p_.journal);
    for (SwapPort* port : p_.ports) end_step(*port, use);
    transactions_.settle();
}

}  // namespace patchbay::engine
