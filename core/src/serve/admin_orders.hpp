// What the admin address is asked to do, read from JSON. Used by Admin.
#pragma once
#include <optional>
#include <vector>

#include "config/engine_config.hpp"
#include "engine/swap/swap_slot.hpp"
#include "serve/fields.hpp"

namespace patchbay::serve {

struct ReadSwap {
    engine::SwapSlot slot = engine::SwapSlot::kScheduler;
    config::PluginChoice choice;
    std::optional<Refusal> refusal;
};
struct ReadSwaps {
    std::vector<ReadSwap> swaps; // each of another slot
    std::optional<Refusal> refusal;
};
// {"kind", "plugin", "params": {name: text, number or bool}}, or {"swaps": [of such]}
ReadSwaps read_swaps(const Json& body);
ReadSwap read_set(const Json& body);  // {"kind", "params"}: choice.plugin stays empty

// What the server does for a request, for a sentence: "exchanged scheduler 'sjf'".
std::string work_of(const std::string& path, const std::string& body);

}  // namespace patchbay::serve
