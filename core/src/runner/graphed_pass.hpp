// One pass of the model over a batch: computed over its ops, or by a graph in their place; after which a graph may be
// captured of it. Part of a ModelRunner's passes.
#pragma once

#include "runner/device_steps.hpp"
#include "runner/forward_pass.hpp"
#include "runner/graph_use.hpp"
#include "runner/pass_graphs.hpp"

namespace patchbay::runner {

class GraphedPass {
  public:
    GraphedPass(const PassContext&, CallTimes&); // to which it adds

    PassInputs& inputs() { return inputs_; }
    PassGraphs& graphs() { return graphs_; }
    const PassGraphs& graphs() const { return graphs_; }

    // ---- in this order. The batch: padded to the choice's bucket, if there is one
    Result<> begin(const Batch&); // forgets the faults of the pass before
    Result<GraphUse> place(const Batch&, const GraphChoice&, const pb_tensor& sampled); // sampled: for placeholders
    Result<> plan() { return calls_.plan_attention(); }
    Result<> compute(const Batch&, size_t rows); // rows: logit rows that count
    bool is_replayed() const { return graph_ != nullptr; }
    Result<> check(uint32_t tokens, const Result<>& done, const Result<>& ended); // ended: the device's step
    // Of the same inputs, in a step of its own. The pass stands whatever becomes of its graph. Nanoseconds taken.
    uint64_t capture(const GraphBucket&, DeviceSteps&);

    const pb_tensor& logits() const { return forward_.logits; }
    const pb_tensor& hidden() const { return forward_.hidden; }

  private:
    Result<> replay();
    Result<> record(pb_graph*&);

    const PassContext c_;
    CallTimes& times_;
    PassInputs inputs_;
    LayerCalls calls_;
    ForwardPass model_;
    PassGraphs graphs_;
    // ---- of the pass under way ----
    PlacedInputs placed_{};
    const CapturedGraph* graph_ = nullptr; // that it replays
    pb_forward forward_{};
};

}  // namespace patchbay::runner
