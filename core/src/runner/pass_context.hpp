// What the passes of one model go over. All of it outlives them, and is exchanged only between two steps.
#pragma once
#include <memory>

#include "base/clock.hpp"
#include "runner/attention_in_use.hpp"
#include "runner/hidden_states.hpp"
#include "runner/kv_memory.hpp"
#include "runner/loaded_weights.hpp"
#include "runner/model_in_use.hpp"
#include "runner/open_device.hpp"

namespace patchbay::runner {

struct HiddenLinks { // between a head and its target
    std::unique_ptr<HiddenStates> kept; // of a target: for its head; null: it has none
    const HiddenStates* goes_on_from = nullptr; // of a head: its target's
};

struct PassContext {
    const OpenDevice& device;
    Clock& clock;
    const ModelInUse& model;
    const AttentionInUse& attention;
    const LoadedWeights& weights;
    KvMemory& kv;
    const HiddenLinks& hidden;
};

}  // namespace patchbay::runner
