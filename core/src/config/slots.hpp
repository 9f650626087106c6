// The keys that name a plugin, in one list: reading, merging, writing and showing configurations follow from it.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/engine_config.hpp"

namespace patchbay::config {

struct SlotInfo {
    std::string kind;                                // and the key
    PluginChoice EngineConfig::*choice;              // null: it may be empty
    std::optional<PluginChoice> EngineConfig::*optional_choice;
    std::string description;

    const PluginChoice* of(const EngineConfig&) const; // null: it is empty
};

std::span<const SlotInfo> slots();                // in the order in which keys are shown
const SlotInfo* find_slot(std::string_view kind); // null: no key names a plugin of this kind

}  // namespace patchbay::config
