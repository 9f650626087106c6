// The keys that name a plugin: `scheduler: sjf` or `scheduler: {plugin: sjf, ageing: 2}`, the plugin's own keys checked
// against its manifest. Used by load.cpp.
#pragma once
#include <string>

#include "config/engine_config.hpp"
#include "config/slots.hpp"
#include "config/table.hpp"
#include "host/registry.hpp"

namespace patchbay::config {

// One that may be empty has the default `none`.
void add_slot(Table<EngineConfig>&, const SlotInfo&, const host::Registry&);

// The same value where it is no key of the engine's: the plugin that a slot is to have later.
PluginChoice read_choice(const Node&, const std::string& kind, const host::Registry&, Faults&);

// The JSON Schema of such a key, with each installed plugin's own keys.
std::string slot_json_schema(const host::Registry&, const std::string& kind);

}  // namespace patchbay::config
