// What the admin address says and reads, as JSON. Used by Admin.
#pragma once
#include "serve/admin.hpp"

namespace patchbay::serve {

struct StatusInputs {
    const Controlled& controlled;
    const config::EngineConfig& requested;
    service::ServiceStatus service;
    JournalState journal;
    std::vector<PendingSwap> pending;
};

Json status_json(const StatusInputs&);
Json swap_json(const host::SwapRecord&);
Json plugins_json(const host::Registry&);
// What is in one registry and not, or otherwise, in the other.
Json reload_json(const host::Registry& before, const host::Registry& after);

struct ReadSwap {
    engine::SwapSlot slot = engine::SwapSlot::kScheduler;
    config::PluginChoice choice;
    std::optional<Refusal> refusal;
};
ReadSwap read_swap(const Json& body); // {"kind", "plugin", "params": {name: text, number or bool}}
ReadSwap read_set(const Json& body);  // {"kind", "params"}: choice.plugin stays empty

}  // namespace patchbay::serve
