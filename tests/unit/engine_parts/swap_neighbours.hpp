// What swaps of an engine's slots need: ports that a test plays, model swaps, transactions, and requests of plugins.
#pragma once
#include "config/engine_config.hpp"
#include "engine/facts.hpp"
#include "engine/placement/recomputation.hpp"
#include "engine/swap/model_swaps.hpp"
#include "engine/swap/swap_request.hpp"
#include "engine/swap/transactions.hpp"
#include "unit/engine_parts/built_plugins.hpp"
#include "unit/engine_parts/step_neighbours.hpp"

namespace patchbay::engine::testing {

struct SwapNeighbours : RowNeighbours {
    static SwapRequest request(SwapSlot slot, const char* plugin) {
        return {.slot = slot, .choice = {plugin, {}}, .registry = built_plugins(), .prober = prober()};
    }

    host::Services services;
    config::EngineConfig config;
    EngineFacts facts;
    Preemption preemption{{settings, sequences, kv, admission, hints, beams, draft_kv, executor, context}};
    Recomputation recomputation{sequences, kv, hints, preemption, prompt_logprobs, facts};
    ModelSwaps model{{config, facts, executor, recomputation, clock, context, journal}};
    FakeSwapPort first{clock, context, journal, "scheduler"}, second{clock, context, journal, "sampler"},
        other{clock, context, journal};
    config::SwapSettings swap_settings{.probation_steps = 1, .max_call_ms = 0};
    Transactions transactions{swap_settings, clock, journal, context};
};

}  // namespace patchbay::engine::testing
