// What became of the settings of a configuration that say "auto", or that could not be had. Used by the status of a
// running engine.
#pragma once
#include <string>
#include <vector>

#include "config/engine_config.hpp"
#include "engine/engine.hpp"
#include "serve/slot_journal.hpp"

namespace patchbay::serve {

struct EffectiveSetting {
    std::string key, requested, effective, reason;
};

// Those whose effective value is not the requested one. `last`: the report of the latest step; null: there was none.
std::vector<EffectiveSetting> effective_settings(const config::EngineConfig& requested, const engine::EngineFacts&,
                                                 const JournalState&, const engine::StepReport* last);

std::string model_plugin(const engine::EngineFacts&); // that computes the model, as "llama"

}  // namespace patchbay::serve
