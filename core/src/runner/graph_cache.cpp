#include "runner/graph_cache.hpp"

#include <algorithm>
#include <utility>


namespace patchbay::runner {

std::vector<uint32_t> default_graph_sizes() {
    std::vector<uint32_t> out = {1, 2, 4};
    for (uint32_t size = 8; size < 256; size += 8) out.push_back(size);
    for (uint32_t size = 256; size <= 512; size += 16) out.push_back(size);
    return out;
}

std::string_view name_of(GraphMiss miss) {
    switch (miss) {
        case GraphMiss::kNone: return "";
        case GraphMiss::kDevice: return "device";
        case GraphMiss::kDisabled: return "disabled";
        case GraphMiss::kUnsupported: return "unsupported_by_plugin";
        case GraphMiss::kMixedBatch: return "mixed_batch";
        case GraphMiss::kTooLarge: return "too_large";
        case GraphMiss::kNotCaptured: return "not_captured";
        case GraphMiss::kHiddenStates: return "hidden_states";
    }
    return "";
}

GraphCache::GraphCache(GraphSettings settings, GraphScope scope, Free free)
    : settings_(std::move(settings)), scope_(std::move(scope)), free_(std::move(free)) {
    std::vector<uint32_t> sizes = settings_.sizes.empty() ? default_graph_sizes() : settings_.sizes;
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    // A step decodes at most so many sequences: of the sizes above the first one holds them all.
    const uint32_t max_size = std::min(scope_.max_num_seqs, scope_.max_num_batched_tokens);
    for (const uint32_t size : sizes) {
        decode_sizes_.push_back(size);
        if (size >= max_size) break;
    }
    for (const uint32_t size : sizes)
        if (size <= scope_.max_num_batched_tokens) mixed_sizes_.push_back(size);
}

GraphMiss GraphCache::general_miss(GraphShape shape) const {
    if (!scope_.device) return GraphMiss::kDevice;
    if (settings_.mode == GraphMode::kNone) return GraphMiss::kDisabled;
    if (scope_.attention == PB_GRAPHS_NONE) return GraphMiss::kUnsupported;
    if (shape == GraphShape::kDecode) return GraphMiss::kNone;
    if (settings_.mode == GraphMode::kFullDecodeOnly) return GraphMiss::kMixedBatch;
    return scope_.attention == PB_GRAPHS_ANY ? GraphMiss::kNone : GraphMiss::kUnsupported;
}

// A mixed batch may have as many sequences as tokens, so its graph has room for them; of logits it has what a step of
// max_num_seqs can ask for, since each row costs a row of the head.
GraphBucket GraphCache::bucket_of(GraphShape shape, uint32_t tokens) const {
    const uint64_t rows = uint64_t{scope_.max_num_seqs} * scope_.rows_per_sequence;
    return {shape, tokens, tokens,
            shape == GraphShape::kDecode ? tokens : static_cast<uint32_t>(std::min<uint64_t>(tokens, rows))};
}

GraphChoice GraphCache::choose(const BatchSize& batch) const {
    const GraphShape shape = batch.max_query_len <= 1 ? GraphShape::kDecode : GraphShape::kMixed;
    if (const GraphMiss miss = general_miss(shape); miss != GraphMiss::kNone) return {.miss = miss};
    const auto& sizes = sizes_of(shape);
    const auto size = std::lower_bound(sizes.begin(), sizes.end(), batch.tokens);
    if (size == sizes.end()) return {.miss = GraphMiss::kTooLarge};
    const GraphBucket bucket = bucket_of(shape, *size);
    if (batch.logit_rows > bucket.logit_rows) return {.miss = GraphMiss::kTooLarge};
    const Key key = key_of(bucket);
    if (const auto at = graphs_.find(key); at != graphs_.end()) return {GraphMiss::kNone, &at->second, bucket};
    const bool refused = refused_.contains(key);
    if (refused && scope_.ranks == 1) return {.miss = GraphMiss::kNotCaptured};
    return {GraphMiss::kNotCaptured, nullptr, bucket, refused};
}

std::vector<GraphBucket> GraphCache::missing() const {
    std::vector<GraphBucket> out;
    for (const GraphShape shape : {GraphShape::kMixed, GraphShape::kDecode}) {
        if (general_miss(shape) != GraphMiss::kNone) continue;
        const auto& sizes = sizes_of(shape);
        for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
            const GraphBucket bucket = bucket_of(shape, *size);
            const Key key = key_of(bucket);
            if (!graphs_.contains(key) && !refused_.contains(key)) out.push_back(bucket);
        }
    }
    return out;
}

void GraphCache::add(const GraphBucket& bucket, CapturedGraph graph) {
    if (settings_.memory_limit > 0 && bytes_ + graph.bytes > settings_.memory_limit) {
        free_(graph.graph);
        return refuse(bucket);
    }
    bytes_ += graph.bytes;
    graphs_[key_of(bucket)] = std::move(graph);
}

void GraphCache::refuse(const GraphBucket& bucket) { refused_.insert(key_of(bucket)); }

void GraphCache::invalidate() {
    for (const auto& [key, captured] : graphs_) free_(captured.graph);
    graphs_.clear();
    refused_.clear();
    bytes_ = 0;
}

uint32_t GraphCache::max_tokens() const {
    uint32_t max_size = 0;
    for (const GraphShape shape : {GraphShape::kDecode, GraphShape::kMixed})
        if (general_miss(shape) == GraphMiss::kNone && !sizes_of(shape).empty())
            max_size = std::max(max_size, sizes_of(shape).back());
    return max_size;
}

}  // namespace patchbay::runner
