#include "runner/graphed_pass.hpp"

#include <string>
#include <utility>

#include "base/refusals.hpp"

namespace patchbay::runner {

GraphedPass::GraphedPass(const PassContext& context, CallTimes& times)
    : c_(context), times_(times), inputs_(context), calls_(context, inputs_, times), model_(context, calls_),
      graphs_(context) {}

Result<> GraphedPass::begin(const Batch& batch) {
    calls_.faults() = {};
    const HiddenStates* const kept = c_.hidden.kept.get();
    if (!kept || batch.tokens() <= kept->target_rows()) return {};
    return broken("a pass over " + std::to_string(batch.tokens()) + " tokens, with room for the hidden states of " +
                  std::to_string(kept->target_rows()));
}

Result<GraphUse> GraphedPass::place(const Batch& batch, const GraphChoice& choice, const pb_tensor& sampled) {
    if (!inputs_.has_room_for(batch)) { // they move, from under the graphs
        graphs_.invalidate();
        PB_CHECK(inputs_.make_room_for(batch));
    }
    PB_TRY(placed_, inputs_.place(batch, choice.bucket));
    model_.fill_placeholders(batch, placed_, sampled);
    // Where inputs had to move there are no graphs any more.
    graph_ = choice.graph && graphs_.cache().count() > 0 ? choice.graph : nullptr;
    return GraphUse{.miss = choice.graph && !graph_ ? GraphMiss::kNotCaptured : choice.miss,
                    .size = graph_ ? choice.bucket->tokens : 0};
}

Result<> GraphedPass::compute(const Batch& batch, size_t rows) {
    using Hidden = ForwardPass::Hidden;
    forward_ = model_.prepare(placed_, batch.hidden().empty() ? Hidden::kUnwanted : Hidden::kWanted);
    const Result<> done = graph_ ? replay() : model_.compute(forward_, times_.model_forward);
    if (done && c_.hidden.goes_on_from && !calls_.faults().out_of_memory) model_.keep_hidden(forward_, batch, rows);
    return done;
}

Result<> GraphedPass::replay() {
    PB_CHECK(graphs_.launch(*graph_, times_.device_launch));
    calls_.charge(graph_->layers); // what attention takes depends on the batch, so it is no part of the graph
    return {};
}

Result<> GraphedPass::check(uint32_t tokens, const Result<>& done, const Result<>& ended) {
    return calls_.faults().check(c_.model.component().type().name, tokens, done, ended);
}

Result<> GraphedPass::record(pb_graph*& graph) {
    calls_.begin_capture(); // the pass's logits stay where they are
    const pb_forward forward = model_.prepare(placed_, ForwardPass::Hidden::kUnwanted);
    return graphs_.record([&] {
        uint64_t ns = 0; // which no step takes
        return model_.compute(forward, ns);
    }, graph);
}

uint64_t GraphedPass::capture(const GraphBucket& bucket, DeviceSteps& steps) {
    const uint64_t begin_ns = c_.clock.now_ns();
    const CallTimes of_pass = times_; // the calls that are recorded are none of the pass's
    pb_graph* graph = nullptr;
    Result<> done = steps.begin(times_);
    if (done) {
        done = record(graph);
        uint64_t waited = 0;
        done = check(bucket.tokens, done, steps.end(times_, waited));
    }
    times_ = of_pass;
    const uint64_t took = c_.clock.now_ns() - begin_ns;
    graphs_.keep(bucket, graph, done, calls_.end_capture());
    return took;
}

}  // namespace patchbay::runner
