// What the admin address says, as JSON. Used by Admin.
#pragma once
#include "serve/admin.hpp"

namespace patchbay::serve {

struct StatusInputs {
    const Controlled& controlled;
    const config::EngineConfig& requested;
    service::ServiceStatus service;
    JournalState journal;
    std::vector<PendingSwap> pending;
    std::vector<NewBuild> new_builds;
    std::vector<Culprit> culprits; // what has ended the servers before this one
};

Json status_json(const StatusInputs&);
Json swap_json(const host::SwapRecord&);
Json swaps_json(const std::vector<host::SwapRecord>&); // of one, as swap_json; of several: those of a transaction
Json plugins_json(const host::Registry&, const SlotLedger*); // null: there is no supervisor
// What is in one registry and not, or otherwise, in the other.
Json reload_json(const host::Registry& before, const host::Registry& after);

}  // namespace patchbay::serve
