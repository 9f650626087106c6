#include "runner/pass_graphs.hpp"

#include <spdlog/spdlog.h>

#include <utility>

#include "host/registry.hpp"
#include "runner/timed.hpp"

namespace patchbay::runner {
namespace {

GraphScope scope_of(const RunnerSettings& settings, bool has_graphs) {
    GraphScope out;
    out.device = has_graphs;
    out.attention = PB_GRAPHS_ANY;
    out.max_num_seqs = settings.max_num_seqs;
    out.max_num_batched_tokens = settings.max_num_batched_tokens;
    out.rows_per_sequence = settings.rows_per_sequence();
    if (settings.ranks) out.ranks = settings.ranks->wire().size;
    return out;
}

// A batch's bounds are part of every graph.
GraphSettings graphs_of(const RunnerSettings& settings) {
    const bool known = settings.max_num_seqs > 0 && settings.max_num_batched_tokens > 0;
    return {known ? settings.cudagraph_mode : GraphMode::kNone, settings.cudagraph_capture,
            settings.cudagraph_capture_sizes, settings.cudagraph_memory};
}

}  // namespace

uint32_t max_padded_tokens(const RunnerSettings& settings, const OpenDevice& device) {
    return GraphCache(graphs_of(settings), scope_of(settings, device.has_graphs()), nullptr).max_tokens();
}

void PassGraphs::open(const RunnerSettings& settings) {
    settings_ = graphs_of(settings);
    scope_ = scope_of(settings, c_.device.has_graphs());
    renew();
}

void PassGraphs::renew() {
    scope_.attention = c_.kv.layers().binding().graphs();
    scope_.identity.clear();
    const host::Component* const parts[] = {c_.device.plugin.component.get(), &c_.model.component(),
                                            &c_.attention.component()};
    for (const host::Component* part : parts) scope_.identity += host::Registry::identity(*part).sha256 + "/";
    scope_.identity += c_.kv.layers().binding().layout_tag();
    cache_ = std::make_unique<GraphCache>(settings_, scope_, [device = &c_.device.plugin](pb_graph* graph) {
        device->call<&pb_device_graphs::graph_free>(graph);
    });
}

GraphChoice PassGraphs::choose(const Batch& batch) {
    GraphChoice choice =
        cache_->choose({batch.tokens(), batch.sequences(), static_cast<uint32_t>(batch.arrays().logit_rows.size()),
                        batch.max_query_len()});
    if (choice.bucket && !batch.hidden().empty() && !c_.hidden.kept) { // no graph was captured with them
        const auto bucket = scope_.ranks > 1 ? choice.bucket : std::nullopt; // ranks pad alike
        choice = {.miss = GraphMiss::kHiddenStates, .graph = nullptr, .bucket = bucket, .refused = true};
    }
    if (choice.bucket) {
        padded_ = batch;
        padded_.pad(choice.bucket->tokens, choice.bucket->sequences, choice.bucket->logit_rows);
    }
    return choice;
}

const Batch& PassGraphs::blank(const GraphBucket& bucket) {
    padded_.clear(c_.kv.batch_form());
    padded_.pad(bucket.tokens, bucket.sequences, bucket.logit_rows);
    return padded_;
}

Result<> PassGraphs::launch(const CapturedGraph& captured, uint64_t& ns) const {
    const host::Device& device = c_.device.plugin;
    return device.component->check(
        timed(c_.clock, ns, [&] { return device.call<&pb_device_graphs::graph_launch>(captured.graph); }),
        "graph_launch");
}

Result<> PassGraphs::record(const std::function<Result<>()>& enqueue, pb_graph*& graph) const {
    PB_CHECK(c_.device.plugin.checked<&pb_device_graphs::graph_begin>());
    const Result<> enqueued = enqueue();
    const Result<> ended = c_.device.plugin.checked<&pb_device_graphs::graph_end>(&graph);
    PB_CHECK(enqueued);
    return ended;
}

void PassGraphs::keep(const GraphBucket& bucket, pb_graph* graph, const Result<>& recorded,
                      std::vector<uint32_t> attended) {
    const host::Device& device = c_.device.plugin;
    if (recorded && graph)
        return cache_->add(bucket, {graph, device.call<&pb_device_graphs::graph_bytes>(graph), std::move(attended)});
    if (graph) device.call<&pb_device_graphs::graph_free>(graph);
    spdlog::warn("steps of {} tokens run without a graph: {}", bucket.tokens,
                 recorded ? "graph_end gave none" : recorded.error());
    cache_->refuse(bucket);
}

}  // namespace patchbay::runner
