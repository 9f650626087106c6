// The graphs of a model's passes on its device: recorded, launched, and dropped when a plugin under them changes. Which
// fits a batch, the GraphCache says. Part of a ModelRunner's passes.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "runner/call_times.hpp"
#include "runner/graph_cache.hpp"
#include "runner/pass_context.hpp"

namespace patchbay::runner {

// Tokens that batches are padded to, at most, as if all attention could be captured; 0: there are no graphs.
uint32_t max_padded_tokens(const RunnerSettings&, const OpenDevice&);

class PassGraphs {
  public:
    explicit PassGraphs(const PassContext& context) : c_(context) {}
    PassGraphs(const PassGraphs&) = delete;
    PassGraphs& operator=(const PassGraphs&) = delete;

    void open(const RunnerSettings&); // once KV is bound; there are none before
    void renew(); // drops all: model or attention is another one
    void invalidate() { cache_->invalidate(); } // drops all: their memory moves
    const GraphCache& cache() const { return *cache_; }
    void note_load(uint64_t ns) { load_ns_ = ns; } // that it took to capture graphs at load
    uint64_t load_ns() const { return load_ns_; }

    // The graph that fits, and padded() if one is to be replayed or captured.
    GraphChoice choose(const Batch&);
    const Batch& padded() const { return padded_; }
    const Batch& blank(const GraphBucket&); // padding alone, in padded()

    Result<> launch(const CapturedGraph&, uint64_t& ns) const; // ns: its time is added there
    // Notes what is enqueued in `graph`, which may be there after a failure too.
    Result<> record(const std::function<Result<>()>& enqueue, pb_graph*& graph) const;
    // Keeps a recorded graph; after a failure frees it, and leaves this bucket alone from then on.
    void keep(const GraphBucket&, pb_graph*, const Result<>& recorded, std::vector<uint32_t> attended);

  private:
    const PassContext c_;
    GraphSettings settings_;
    GraphScope scope_; // of the plugins that are bound
    std::unique_ptr<GraphCache> cache_ = std::make_unique<GraphCache>(GraphSettings{}, GraphScope{}, nullptr);
    Batch padded_;
    uint64_t load_ns_ = 0;
};

}  // namespace patchbay::runner
