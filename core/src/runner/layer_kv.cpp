#include "runner/layer_kv.hpp"

#include <algorithm>

namespace patchbay::runner {
namespace {

constexpr uint64_t kLayerAlign = 64; // of what a layer has in a page

uint64_t aligned(uint64_t bytes) { return (bytes + kLayerAlign - 1) / kLayerAlign * kLayerAlign; }

Result<kv::LayerKv> describe(const host::Component& attention, const pb_kv_spec& kv, const pb_attention_spec& spec) {
    if (kv.kind == PB_KV_RECURRENT) {
        if (kv.state_bytes == 0) return fail("is recurrent and keeps no state");
        return kv::LayerKv{{kv::GroupKind::kRecurrent, 0}, 0, 0, aligned(kv.state_bytes), "state"};
    }
    if (kv.kind != PB_KV_FULL && kv.kind != PB_KV_SLIDING) return fail("keeps KV of kind " + std::to_string(kv.kind));
    if (kv.kind == PB_KV_SLIDING && kv.sliding_window == 0) return fail("has a sliding window of no token");
    const auto refuse = [&](const std::string& what) {
        return fail(StatusCode::kUnsupported,
                    what + ", which " + attention.label() +
                        " does not do (choose another: patchbay plugin list --kind attention)");
    };
    if (spec.slopes && !(attention.table<pb_attention>()->capabilities & PB_ATTENTION_SLOPES))
        return refuse("adds to scores by distance (ALiBi)");
    if (spec.sinks && !(attention.table<pb_attention>()->capabilities & PB_ATTENTION_SINKS))
        return refuse("has attention sinks");
    pb_attention_layout layout = sized<pb_attention_layout>();
    PB_CHECK(host::checked<&pb_attention::describe>(attention, &spec, &layout));
    if (layout.page_bytes == 0)
        return fail(attention.label() + std::string(" describes empty pages"));
    const std::string tag(layout.layout_tag, std::find(layout.layout_tag, std::end(layout.layout_tag), '\0'));
    const auto kind = kv.kind == PB_KV_SLIDING ? kv::GroupKind::kSliding : kv::GroupKind::kFull;
    return kv::LayerKv{{kind, spec.sliding_window}, kv.kv_heads, kv.head_dim, aligned(layout.page_bytes), tag};
}

}  // namespace

pb_attention_spec attention_spec(const pb_kv_spec& kv, const KvForm& form, size_t layer) {
    return {sizeof(pb_attention_spec), kv.heads, kv.kv_heads, kv.head_dim, form.block_size,
            kv.kind == PB_KV_SLIDING ? kv.sliding_window : 0, form.activation_dtype, form.kv_dtypes[layer], kv.scale,
            kv.soft_cap, form.device.c_str(), form.max_seqs, form.max_tokens, form.max_seq_len, form.simulated,
            kv.slopes, kv.sinks != 0, 0};
}

Result<std::optional<uint32_t>> kv_owner(std::span<const pb_kv_spec> layers, size_t layer) {
    const pb_kv_spec& kv = layers[layer];
    if (kv.kv_source_layer == 0) return std::optional<uint32_t>();
    const uint32_t owner = kv.kv_source_layer - 1;
    const auto refuse = [&](const std::string& why) {
        return fail("shares the KV of layer " + std::to_string(owner) + ", which " + why);
    };
    if (owner >= layer) return refuse("is no earlier one");
    const pb_kv_spec& its = layers[owner];
    if (its.kv_source_layer != 0) return refuse("keeps none");
    if (kv.kind == PB_KV_RECURRENT || its.kind == PB_KV_RECURRENT) return refuse("is not for states");
    if (its.kind != kv.kind || its.sliding_window != kv.sliding_window)
        return refuse("sees another span of tokens (other kinds or windows)");
    if (its.kv_heads != kv.kv_heads || its.head_dim != kv.head_dim)
        return refuse("has " + std::to_string(its.kv_heads) + " heads of " + std::to_string(its.head_dim) +
                      ", expected " + std::to_string(kv.kv_heads) + " of " + std::to_string(kv.head_dim));
    return std::optional(owner);
}

Result<std::vector<kv::LayerKv>> describe_layers(const host::Component& attention, std::span<const pb_kv_spec> layers,
                                                 const KvForm& form) {
    std::vector<kv::LayerKv> out;
    for (size_t i = 0; i < layers.size(); ++i) {
        auto layer = describe(attention, layers[i], attention_spec(layers[i], form, i));
        if (!layer) return prefixed("layer " + std::to_string(i), layer.failure());
        out.push_back(*std::move(layer));
    }
    return out;
}

std::string layout_tag_of(std::span<const kv::LayerKv> layers) {
    std::string out;
    for (size_t i = 0; i < layers.size();) {
        size_t end = i;
        while (end < layers.size() && layers[end].layout_tag == layers[i].layout_tag) ++end;
        out += (i ? "+" : "") + layers[i].layout_tag;
        if (end - i < layers.size()) out += " x" + std::to_string(end - i);
        i = end;
    }
    return out;
}

}  // namespace patchbay::runner
