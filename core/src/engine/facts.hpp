// What an engine has chosen and found out about itself: plain data, for the record.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "host/identity.hpp"
#include "runner/model_work.hpp"

namespace patchbay::engine {

struct ModelFacts {
    std::string architecture, identity, weight_dtype;
    std::string dtype;                // of weights that are not quantised
    uint32_t vocab_size = 0;
    uint32_t hidden_size = 0;         // of embeddings; 0: the model gives none
    uint32_t position_length = 0;     // max_model_len, where positions are scaled by it; else 0
    uint64_t weight_bytes = 0;
    runner::ModelWork work;
};

struct KvFacts {
    uint32_t num_blocks = 0, block_size = 0;
    uint32_t groups = 0, state_groups = 0; // of each a block of tokens, or a sequence's state, takes a page
    std::vector<uint32_t> windows;    // by group of tokens; 0: it keeps all
    uint64_t bytes = 0, page_bytes = 0;
    uint32_t swap_pages = 0;          // in host memory
    double padding = 0;               // share of a typical sequence's pages that nothing uses
    std::string prefix_caching;       // on, off, or why it is off
    std::string dtype;
    std::string layout;               // of pages, as attention names it
    double watermark = 0;             // share of blocks kept free when admitting, at first
};

struct GraphFacts {
    uint32_t count = 0;               // captured at load
    uint64_t bytes = 0, capture_ns = 0;
};

struct DraftFacts {
    std::string model;                // as ModelFacts::identity, of the one that a proposer drafts with; empty: none
    uint64_t weight_bytes = 0;
};

struct EngineFacts { // automatic choices, for the record
    ModelFacts model;
    KvFacts kv;
    GraphFacts graphs;
    DraftFacts draft;
    uint32_t max_model_len = 0, threads = 0;
    std::string device_name, isa;
    uint64_t load_ns = 0; // to read, convert and prepare the weights, and to allocate KV
    std::vector<host::Identity> plugins;
    std::vector<std::string> ranks; // by rank: "node1 (pid 4711)"; one for an engine that is alone or simulated
    uint32_t tensor_parallel_size = 0;
    bool synthetic_acceptance = false; // drafts are accepted by given rates: texts are not the model's
    bool device_computes = true; // false: times are what it charges, tokens are synthetic

    // Identifies KV beside its tokens: engines with equal identities compute equal KV.
    std::string kv_identity() const {
        const std::string length = model.position_length > 0 ? "/" + std::to_string(model.position_length) : "";
        return model.identity + "/" + model.weight_dtype + "/" + model.dtype + "/" + kv.layout + "/" + draft.model +
               length;
    }
};

}  // namespace patchbay::engine
