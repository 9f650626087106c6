// What becomes of an exchange of a component, as its record says it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "host/identity.hpp"
#include "host/settings.hpp"

namespace patchbay::host {

enum class SwapState { kReady, kPosted, kOnProbation, kCommitted, kRefused, kRolledBack };
std::string_view name_of(SwapState); // "ready", "posted", "on probation", "committed", "refused", "rolled back"

struct SwapRecord {
    std::string kind;            // "scheduler"
    uint64_t transaction = 0;    // the same of swaps that succeed or fail together; 0: it is alone
    Identity from, to;           // from: what holds the slot, until the exchange; to: as far as it was found
    SwapState state = SwapState::kReady;
    // Refused in: find, probe, create, post, save, load, or what the slot's port names; rolled back in: the call that
    // failed, time, run. Of either: together, where another one of its transaction was.
    std::string phase, reason;
    StatusCode code = StatusCode::kFailed; // which kind of failure the reason is, where there is one
    uint64_t step = 0;           // before which the slot changed hands; 0: it never did
    uint64_t time_ns = 0;        // then, on the engine's clock
    uint64_t pause_ns = 0;       // what that took: of several boundaries, the longest
    uint64_t end_step = 0;       // in which it was committed, refused at the boundary or rolled back
    bool after_calls = false;    // rolled back after the calls of that step, which were made of the one that left
    Settings settings;           // of the one that enters, defaults included; none: it was refused before

    bool settled() const { return state >= SwapState::kCommitted; }
    // Refused or rolled back. why.text: it need not say again whose call in which phase it was.
    void end(SwapState, const std::string& in_phase, const Failure& why);
    std::string exchange() const; // "scheduler fcfs→sjf"; of an empty slot "proposer none→ngram"
    std::string text() const;    // "swap scheduler mine→mine: refused in phase load: cannot read state 'mine/1'"
};

}  // namespace patchbay::host
