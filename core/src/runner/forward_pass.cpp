#include "runner/forward_pass.hpp"

#include <algorithm>

#include "patchbay/sdk/tensor.hpp"
#include "runner/timed.hpp"

namespace patchbay::runner {

pb_forward ForwardPass::prepare(const PlacedInputs& inputs, Hidden hidden) {
    const pb_model_facts& facts = c_.model.facts();
    const pb_dtype dtype = c_.device.info.activation_dtype;
    pb_forward out{};
    out.struct_size = sizeof out;
    calls_.offer(out);
    out.token_count = static_cast<uint32_t>(inputs.ids.shape[0]);
    out.ops = &c_.device.ops;
    out.weights = c_.weights.by_spec.data();
    out.ids = inputs.ids;
    out.positions = inputs.positions;
    out.logit_rows = inputs.logit_rows;
    const int64_t logits_shape[] = {inputs.logit_rows.shape[0], facts.vocab_size};
    out.logits = calls_.temp(PB_F32, logits_shape);
    out.activation_dtype = dtype;
    const int64_t hidden_shape[] = {inputs.ids.shape[0], facts.hidden_size};
    if (c_.hidden.kept) out.hidden = c_.hidden.kept->rows(0, out.token_count);
    else if (hidden == Hidden::kWanted) out.hidden = calls_.temp(dtype, hidden_shape);
    if (c_.hidden.goes_on_from) {
        out.draft_step = inputs.draft_step;
        out.features = c_.hidden.goes_on_from->all();
        out.feature_rows = inputs.features;
        if (facts.layer_count > 0) out.hidden = calls_.temp(dtype, hidden_shape);
    }
    return out;
}

Result<> ForwardPass::compute(const pb_forward& forward, uint64_t& ns) const {
    const host::Component& model = c_.model.component();
    const pb_status status = timed(c_.clock, ns, [&] { return host::call<&pb_model::forward>(model, &forward); });
    return model.check(status, "forward");
}

void ForwardPass::fill_placeholders(const Batch& batch, const PlacedInputs& inputs, const pb_tensor& sampled) const {
    const auto& ids = batch.arrays().ids;
    if (std::none_of(ids.begin(), ids.end(), [](int32_t id) { return id < 0; })) return;
    const pb_ops& ops = c_.device.ops;
    if (!ops.fill_placeholders) return; // nothing is computed from them
    const pb_tensor from = c_.device.computes() ? sampled
                                                : tensor(nullptr, PB_I32, {static_cast<int64_t>(ids.size())}, 1);
    ops.fill_placeholders(ops.ctx, &inputs.ids, &from);
}

// After a graph, not in it: where they go changes from pass to pass.
void ForwardPass::keep_hidden(const pb_forward& forward, const Batch& batch, size_t rows) const {
    if (rows == 0 || c_.model.facts().layer_count == 0) return;
    const pb_tensor to = c_.hidden.goes_on_from->rows(batch.kept_row, static_cast<uint32_t>(rows));
    pb_tensor wanted = forward.logit_rows; // without those that fill a graph up
    wanted.shape[0] = static_cast<int64_t>(rows);
    forward.ops->gather_rows(forward.ops->ctx, &to, &forward.hidden, &wanted);
}

}  // namespace patchbay::runner
