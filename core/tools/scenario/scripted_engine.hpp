// An engine that follows a script in place of a model; all else of it is as it serves. Used by scenario/player.cpp, and
// by tests.
#pragma once
#include <memory>

#include "engine/engine.hpp"
#include "execution/script.hpp"
#include "host/registry.hpp"

namespace patchbay::scenario {

struct ScriptSetup {
    execution::Script& script;                         // outlives the engine
    host::Proposer proposer;                           // empty: there are no drafts
    std::shared_ptr<const text::Tokenizer> vocabulary; // the tokens' text; null: ids only
};

// The device must be one that computes nothing.
Result<std::unique_ptr<engine::Engine>> create_scripted(const config::EngineConfig&, const host::Registry&, Clock&,
                                                        ScriptSetup);

}  // namespace patchbay::scenario
