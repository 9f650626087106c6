// Keys that are right alone and not together. Used by load_engine_config().
#pragma once
#include "config/document.hpp"
#include "config/engine_config.hpp"
#include "config/table.hpp"

namespace patchbay::config {

// `effective`: every key with its origin. Faults: what cannot be; warnings: what works and can hardly be meant.
void check_together(const EngineConfig&, const Node& effective, Faults& faults, Faults& warnings);

}  // namespace patchbay::config
