// What an Engine owns: what was loaded, and the pipeline over it. Engine-internal.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "base/thread_pool.hpp"
#include "engine/engine_control.hpp"
#include "engine/facts.hpp"
#include "engine/pipeline.hpp"
#include "engine/speculation/draft_model.hpp"

namespace patchbay::engine {

struct Engine::Impl { // in the order in which parts are made, so that each goes before what it uses
    explicit Impl(Clock& c) : clock(c) {}

    Clock& clock;
    config::EngineConfig config;
    std::optional<host::Registry> allowed;            // plugins; none: all
    std::unique_ptr<ThreadPool> pool;
    pb_clock clock_service{};
    host::Services services;
    EngineFacts facts{};
    std::shared_ptr<const text::Tokenizer> tokenizer;
    std::vector<TokenId> eos;
    std::unique_ptr<StepObserver> observer;           // of the caller's; null: there is none
    std::unique_ptr<execution::Executor> executor;
    std::unique_ptr<DraftModel> draft_model;          // null: there is no proposer
    std::unique_ptr<Pipeline> pipeline;
    std::optional<EngineControl> control;
};

}  // namespace patchbay::engine
