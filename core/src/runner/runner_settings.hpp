// What a ModelRunner is made with.
#pragma once
#include <string>

#include "config/engine_config.hpp"
#include "host/component.hpp"
#include "runner/kv_dtypes.hpp"
#include "runner/ranks.hpp"
#include "weights/checkpoint.hpp"
#include "weights/loader.hpp"

namespace patchbay::runner {

// The engine's, and what is known once a model is chosen. max_num_seqs or max_num_batched_tokens 0: not known, and
// there are no graphs.
struct RunnerSettings : config::EngineSettings {
    weights::FlatConfig model_config;  // config.json, or the shape of a dummy model
    weights::WeightForm weights;       // as most are wanted
    KvDTypes kv_dtypes;                // what kv_cache_dtype means for this model
    std::string device;                // the device plugin's name
    Ranks* ranks = nullptr;            // of which it is one; outlives the runner. null: it is alone
    // On the device: what it takes there is measured, too. null: rows are sampled on the host.
    const host::Component* sampler = nullptr;

    uint32_t rows_per_sequence() const { return 1 + num_speculative_tokens; } // logit rows at most
};

// A second model, whose passes go over the same sequences and whose KV lies in the same pages: a draft model, or a
// head, which goes on from the first one's hidden states and takes its token table and lm head.
struct DraftModel {
    host::Model model;
    pb_model_facts facts = sized<pb_model_facts>();            // that it gave when it read model_config
    weights::FlatConfig model_config;
    weights::WeightSource source;      // until the runner is made
    weights::WeightForm weights;
    KvDTypes kv_dtypes;
};

}  // namespace patchbay::runner
