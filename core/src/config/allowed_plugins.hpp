// The key `allowed_plugins`: digests by the names of libraries. Used by load.cpp.
#pragma once
#include "config/engine_config.hpp"
#include "config/table.hpp"

namespace patchbay::config {

void add_allowed_plugins(Table<EngineConfig>&);

}  // namespace patchbay::config
