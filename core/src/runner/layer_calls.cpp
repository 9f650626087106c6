#include "runner/layer_calls.hpp"

#include <string>
#include <utility>

#include "patchbay/sdk/tensor.hpp"
#include "runner/timed.hpp"

namespace patchbay::runner {

void LayerCalls::offer(pb_forward& forward) {
    workspace_.reset();
    forward.ctx = this;
    forward.temp = temp;
    forward.attend = attend;
    forward.state = state;
}

pb_tensor LayerCalls::temp(void* self, pb_dtype dtype, int32_t rank, const int64_t* shape) {
    return static_cast<LayerCalls*>(self)->temp(dtype, std::span(shape, static_cast<size_t>(rank)));
}

pb_tensor LayerCalls::temp(pb_dtype dtype, std::span<const int64_t> shape) {
    const auto rank = static_cast<int32_t>(shape.size());
    pb_tensor t{nullptr, dtype, rank, {1, 1, 1, 1}, {1, 1, 1, 1}, c_.device.of_tensors(), 0};
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0;) {
        t.shape[i] = shape[i];
        t.strides[i] = stride;
        stride *= shape[i];
    }
    if (!c_.device.computes()) return t;
    t.data = workspace_.take(static_cast<uint64_t>(stride * dtype_bytes(dtype)));
    if (!t.data) faults_.out_of_memory = true;
    return t;
}

bool LayerCalls::keeps(uint32_t layer, kv::GroupKind kind) {
    const bool wants_state = kind == kv::GroupKind::kRecurrent;
    const uint32_t count = c_.model.facts().layer_count;
    if (faults_.any_of_model()) return false;
    if (layer >= count)
        faults_.layer = (wants_state ? "requests a state in layer " : "attends in layer ") + std::to_string(layer) +
                        " of " + std::to_string(count);
    else if (wants_state != (c_.kv.layers().bound_of(layer) == nullptr))
        faults_.layer = wants_state ? "requests a state in layer " + std::to_string(layer) + ", which attends"
                                    : "attends in layer " + std::to_string(layer) + ", which keeps a state";
    return faults_.layer.empty();
}

void LayerCalls::attend(void* self, uint32_t layer, const pb_tensor* out, const pb_tensor* q, const pb_tensor* k,
                        const pb_tensor* v) {
    static_cast<LayerCalls*>(self)->attend(layer, out, q, k, v);
}

void LayerCalls::attend(uint32_t layer, const pb_tensor* out, const pb_tensor* q, const pb_tensor* k,
                        const pb_tensor* v) {
    if (!keeps(layer, kv::GroupKind::kFull)) return;
    if (capturing_) attended_.push_back(layer);
    const KvLayers& layers = c_.kv.layers();
    if (layers.keeps_its_own(layer) != (k && v)) {
        faults_.layer = k && v ? "gives layer " + std::to_string(layer) + ", which shares another's KV, its own"
                               : "attends in layer " + std::to_string(layer) + " without k and v";
        return;
    }
    if (!c_.device.computes()) return capturing_ ? void() : charge(layer, false);
    const BoundAttention& bound = *layers.bound_of(layer);
    const pb_attention_batch& batch = inputs_.attention(bound.group);
    const pb_kv_view view = c_.kv.view(layer, c_.weights.sinks.of(layer));
    const host::Component& attention = c_.attention.component();
    if (k) timed(c_.clock, times_.attention_append, [&] {
        host::call<&pb_attention::append_kv>(attention, bound.self, &batch, &view, k, v);
    });
    timed(c_.clock, times_.attention_run,
          [&] { host::call<&pb_attention::run>(attention, bound.self, &batch, &view, out, q); });
}

void LayerCalls::charge(std::span<const uint32_t> attended) {
    if (c_.device.computes()) return;
    for (const uint32_t layer : attended) charge(layer, true);
}

void LayerCalls::charge(uint32_t layer, bool in_graph) {
    const BoundAttention& bound = *c_.kv.layers().bound_of(layer);
    pb_cost cost = sized<pb_cost>();
    pb_attention_batch batch = inputs_.attention(bound.group);
    if (!c_.kv.layers().keeps_its_own(layer)) { // nothing is appended
        no_slots_.assign(batch.token_count, -1);
        batch.slot_mapping = no_slots_.data();
    }
    const Result<> known = host::checked<&pb_attention::cost>(c_.attention.component(), bound.self, &batch, &cost);
    cost.in_graph = in_graph;
    if (known) c_.device.plugin.call<&pb_device_simulation::charge>(&cost);
    else faults_.cost = known.error();
}

void LayerCalls::state(void* self, uint32_t layer, pb_state* out) {
    LayerCalls& calls = *static_cast<LayerCalls*>(self);
    if (!calls.keeps(layer, kv::GroupKind::kRecurrent)) return;
    const KvLayers& layers = calls.c_.kv.layers();
    pb_state state = calls.inputs_.states(layers.group_of(layer));
    const pb_kv_view view = calls.c_.kv.view(layer, nullptr);
    state.data = view.data;
    state.page_stride = view.page_stride;
    state.page_count = view.page_count;
    copy_out(out, state);
}

Result<> LayerCalls::plan_attention() {
    const host::Component& attention = c_.attention.component();
    for (const BoundAttention& bound : c_.kv.layers().binding().all())
        PB_CHECK(attention.check(timed(c_.clock, times_.attention_plan, [&] {
            return host::call<&pb_attention::plan>(attention, bound.self, &inputs_.attention(bound.group),
                                                   bound.plan_buffer);
        }), "plan"));
    return {};
}

void LayerCalls::begin_capture() {
    workspace_.hold();
    attended_.clear();
    capturing_ = true;
}

std::vector<uint32_t> LayerCalls::end_capture() {
    capturing_ = false;
    return std::exchange(attended_, {});
}

}  // namespace patchbay::runner
