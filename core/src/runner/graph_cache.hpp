// Which captured graph a forward pass replays, and why it replays none: modes, sizes, keys, and the graphs themselves
// with the memory that they take. PassGraphs records and launches them; no device is known here. [step thread]
#pragma once
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/engine_config.hpp"
#include "patchbay/abi/attention.h"
#include "patchbay/abi/device.h"
#include "runner/graph_use.hpp"

namespace patchbay::runner {

using config::GraphCapture;
using config::GraphMode;

struct GraphSettings { // as configured
    GraphMode mode = GraphMode::kNone;
    GraphCapture capture = GraphCapture::kEager;
    std::vector<uint32_t> sizes;  // tokens; empty: default_graph_sizes()
    uint64_t memory_limit = 0;    // bytes of all graphs together; 0: none
};

// 1, 2, 4, then by eights to 256 and by sixteens to 512.
std::vector<uint32_t> default_graph_sizes();

struct GraphScope { // what of an engine decides which graphs there can be
    bool device = false;                  // it captures
    pb_attention_graphs attention = PB_GRAPHS_NONE; // of all that are bound the least
    uint32_t max_num_seqs = 1, max_num_batched_tokens = 1;
    uint32_t rows_per_sequence = 1;       // logit rows: 1 + drafts
    uint32_t ranks = 1;                   // more: a batch is padded alike on all, whatever each has captured
    std::string identity;                 // of what goes into a graph: digests of plugins, layout tag
};

enum class GraphShape { kDecode, kMixed }; // decode: no sequence has more than one token

struct GraphBucket { // what a batch is padded to
    GraphShape shape = GraphShape::kDecode;
    uint32_t tokens = 0, sequences = 0, logit_rows = 0;
};

struct CapturedGraph {
    pb_graph* graph = nullptr;
    uint64_t bytes = 0;
    std::vector<uint32_t> layers; // that attended, in order
};

struct BatchSize {
    uint32_t tokens = 0, sequences = 0, logit_rows = 0, max_query_len = 0;
};

struct GraphChoice {
    GraphMiss miss = GraphMiss::kNone;
    const CapturedGraph* graph = nullptr; // to replay, after padding to the bucket
    std::optional<GraphBucket> bucket;    // without a graph: to be padded to, run, and then captured,
    bool refused = false;                 // or not, since that has failed
};

class GraphCache {
  public:
    using Free = std::function<void(pb_graph*)>;

    GraphCache(GraphSettings, GraphScope, Free);
    ~GraphCache() { invalidate(); }
    GraphCache(const GraphCache&) = delete;
    GraphCache& operator=(const GraphCache&) = delete;

    GraphChoice choose(const BatchSize&) const;
    // What is not there yet and worth a capture, the largest first; all of it, whatever the mode of capture.
    std::vector<GraphBucket> missing() const;
    bool captures_at_load() const { return settings_.capture == GraphCapture::kEager; }

    // Keeps the graph, or where it would pass the limit frees it and leaves this bucket alone from then on.
    void add(const GraphBucket&, CapturedGraph);
    void refuse(const GraphBucket&); // it cannot be captured
    void invalidate();               // frees all, forgets refusals: a plugin or the memory under them has changed

    uint32_t count() const { return static_cast<uint32_t>(graphs_.size()); }
    uint64_t bytes() const { return bytes_; }
    uint32_t max_tokens() const; // of a bucket; 0: there are none

  private:
    struct Key {
        std::string identity;
        GraphShape shape;
        uint32_t tokens;
        auto operator<=>(const Key&) const = default;
    };
    Key key_of(const GraphBucket& b) const { return {scope_.identity, b.shape, b.tokens}; }
    GraphMiss general_miss(GraphShape) const; // for any batch of that shape
    GraphBucket bucket_of(GraphShape, uint32_t tokens) const;
    const std::vector<uint32_t>& sizes_of(GraphShape s) const {
        return s == GraphShape::kDecode ? decode_sizes_ : mixed_sizes_;
    }

    GraphSettings settings_;
    GraphScope scope_;
    Free free_;
    std::vector<uint32_t> decode_sizes_, mixed_sizes_; // ascending
    std::map<Key, CapturedGraph> graphs_;
    std::set<Key> refused_;
    uint64_t bytes_ = 0;
};

}  // namespace patchbay::runner
